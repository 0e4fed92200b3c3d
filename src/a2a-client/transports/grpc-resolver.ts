import { experimental, Metadata, status } from '@grpc/grpc-js';
import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { mayConnect, targetOf, type Target } from '../../platform/http/outbound/address.js';
import { requireAllowed, urlNotAllowed } from '../../platform/http/outbound/safe-connect.js';
import type { OutboundPolicy } from '../../platform/http/outbound/safe-fetch.js';

/**
 * Status details of a resolution that the policy refused; the refused address is not reported to callers (abuse 23).
 */
export const refusedAddress = 'rialto: url_not_allowed';

const scheme = 'rialto-checked';
const policies = new Map<string, OutboundPolicy>();

type Constructor = Parameters<typeof experimental.registerResolver>[1];
type Listener = ConstructorParameters<Constructor>[1];
type GrpcTarget = ConstructorParameters<Constructor>[0];

/**
 * Parses `host:port` or a URL of it. Throws `url_not_allowed` when it is neither, or when its text alone breaks the
 * policy.
 */
export function grpcTargetOf(url: string, policy: OutboundPolicy): Target {
  const text = /^https?:\/\//i.test(url) ? url : `https://${url}`;
  requireAllowed(text, policy);
  return targetOf(new URL(text));
}

/** Resolves a target to its addresses. Throws `url_not_allowed` when one of them is not allowed (AN-39, abuse 20). */
export async function vettedAddresses(target: Target, policy: OutboundPolicy): Promise<string[]> {
  const found = isIP(target.host) === 0 ? await resolve(target.host, policy) : [target.host];
  if (found.length === 0) throw new RialtoError('remote_transport');
  if (found.every((address) => mayConnect(target, address, policy.allow))) return found;
  throw urlNotAllowed(`${target.host} resolves to an address that is not public`, policy, target.host);
}

async function resolve(host: string, policy: OutboundPolicy): Promise<string[]> {
  try {
    const found = policy.resolve ? await policy.resolve(host) : await lookup(host, { all: true, order: 'verbatim' });
    return found.map(({ address }) => address);
  } catch (cause) {
    throw new RialtoError('remote_transport', { cause });
  }
}

/**
 * Returns a gRPC target with resolutions that all pass the policy: grpc-js connects to the checked addresses, and the
 * name stays the authority and the TLS server name. The target ends with a slash: without it grpc-js would give the
 * name to a proxy from the environment, which resolves it again, and the SDK's client takes no channel options.
 */
export function checkedTarget(key: string, target: Target, policy: OutboundPolicy): string {
  if (policies.size === 0) experimental.registerResolver(scheme, CheckedResolver);
  policies.set(key, policy);
  return `${scheme}://${key}/${authorityOf(target)}/`;
}

export function forgetPolicy(key: string): void {
  policies.delete(key);
}

function authorityOf({ host, port }: Target): string {
  return `${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Pause between resolutions: a balancer asks again as soon as a connection fails, which would be an endless loop. */
const pauseMs = 1_000;

class CheckedResolver {
  private live = true;
  private resolvedAt?: number;
  private waiting?: NodeJS.Timeout;

  constructor(
    private readonly target: GrpcTarget,
    private readonly listener: Listener,
  ) {}

  static getDefaultAuthority({ path }: GrpcTarget): string {
    return path.slice(0, -1);
  }

  updateResolution(): void {
    this.live = true;
    if (this.waiting) return;
    const wait = this.resolvedAt === undefined ? 0 : this.resolvedAt + pauseMs - systemClock.elapsed();
    this.waiting = setTimeout(() => void this.resolve(), Math.max(0, wait)).unref();
  }

  destroy(): void {
    this.live = false;
    clearTimeout(this.waiting);
    this.waiting = undefined;
    this.resolvedAt = undefined;
  }

  private async resolve(): Promise<void> {
    this.waiting = undefined;
    this.resolvedAt = systemClock.elapsed();
    try {
      this.reportResult(experimental.statusOrFromValue(await this.addresses()));
    } catch (error) {
      const isRefused = error instanceof RialtoError && error.code === 'url_not_allowed';
      const details = isRefused ? refusedAddress : 'name resolution failed';
      this.reportResult(
        experimental.statusOrFromError({ code: status.UNAVAILABLE, details, metadata: new Metadata() }),
      );
    }
  }

  private reportResult(result: Parameters<Listener>[0]): void {
    if (this.live) this.listener(result, {}, null, '');
  }

  private async addresses() {
    const policy = policies.get(this.target.authority ?? '');
    const target = targetOf(new URL(`https://${this.target.path}`));
    if (!policy) throw new RialtoError('url_not_allowed');
    const found = await vettedAddresses(target, policy);
    return found.map((host) => ({ addresses: [{ host, port: target.port }] }));
  }
}
