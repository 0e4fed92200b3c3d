import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { withTimeout } from '../../kernel/abort.js';
import { newTrace, traceHeaders } from '../../platform/telemetry/trace-context.js';
import { lineageHeader } from '../../platform/secrets/lineage.js';
import { depthHeader } from '../../policy/context.service.js';
import type { Credential } from '../../registry/registry.types.js';
import { isSameOrigin } from '../transports/endpoint-choice.js';
import type { RemoteCredentials } from './remote-credentials.js';
import type { HopHeaders, HopLimits } from '../transports/remote-hop.js';

/** The agent that a credential belongs to, and the only origin that may receive it. */
export interface CredentialOwner {
  readonly id: string;
  /** The URL that the agent was registered with; the URLs of its card do not count. */
  readonly url: string;
}

/**
 * Returns the trace, delegation depth and lineage for the next hop; no header of the incoming request is forwarded
 * (abuse 17).
 */
export function ownHeaders(ctx: CallContext, spanId: string, lineage: string): Record<string, string> {
  const { traceId, sampled } = ctx.trace ?? newTrace();
  const delegation = { [depthHeader]: String(ctx.depth + 1), [lineageHeader]: lineage };
  return { ...traceHeaders({ traceId, sampled, spanId }, spanId), ...delegation };
}

/**
 * Headers of one call to a registered agent: the gateway's own, and the agent's credential for its own origin only
 * (abuse 18).
 */
export class AgentHeaders implements HopHeaders {
  readonly sent = new Set<string>();
  private renewals = 0;

  constructor(
    private readonly owner: CredentialOwner,
    private readonly gatewayHeaders: Record<string, string>,
    /** Opens the sealed credential, if there is one; called once for each request that may carry it. */
    private readonly open: (() => Credential | undefined) | undefined,
    private readonly credentials: RemoteCredentials,
  ) {}

  async headersFor(url: string, limits: HopLimits): Promise<Record<string, string>> {
    const credential = this.open && isSameOrigin(asHttpUrl(url), this.owner.url) ? this.open() : undefined;
    if (credential === undefined) return this.gatewayHeaders;
    const pendingProof = this.credentials.headers(this.owner.id, credential);
    const proof = credential.type === 'oauth2' ? await withinLimits(pendingProof, limits) : await pendingProof;
    // Both forms count as sent: the whole value, and the value without its scheme.
    for (const value of Object.values(proof)) this.sent.add(value).add(value.split(' ').at(-1)!);
    return { ...proof, ...this.gatewayHeaders };
  }

  renew(): boolean {
    return this.renewals++ === 0 && this.credentials.forgetToken(this.owner.id);
  }
}

/** Returns the https URL of a gRPC target, which has no scheme, so that its origin can be compared. */
function asHttpUrl(url: string): string {
  return /^https?:/i.test(url) ? url : `https://${url}`;
}

/**
 * Ends the wait of this call at its own limits. Other callers wait for the same token, so these limits must not end
 * its request.
 */
function withinLimits<T>(work: Promise<T>, { deadline, signals }: HopLimits): Promise<T> {
  const isCanceled = (): boolean => signals.some(({ aborted }) => aborted);
  const late = (): RialtoError => new RialtoError(isCanceled() ? 'canceled' : 'remote_timeout');
  return withTimeout(Math.ceil(deadline.leftMs), [...signals], () => work, late);
}
