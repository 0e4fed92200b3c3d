import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { timeoutSignal } from '../../kernel/abort.js';
import { newTrace, traceHeaders } from '../../platform/telemetry/trace-context.js';
import { lineageHeader } from '../../platform/secrets/lineage.js';
import { depthHeader } from '../../policy/context.service.js';
import type { Credential } from '../../registry/registry.types.js';
import { isSameOrigin } from '../transports/endpoint-choice.js';
import type { RemoteCredentials } from './remote-credentials.js';
import type { HopHeaders, HopLimits } from '../transports/remote-hop.js';

/** Whose credential it is, and the only origin that may see it. */
export interface CredentialOwner {
  readonly id: string;
  /** The URL the agent was registered by, whatever its card says. */
  readonly url: string;
}

/** The trace, the depth of delegation and its lineage, one hop further; nothing that came in goes out (abuse 17). */
export function ownHeaders(ctx: CallContext, spanId: string, lineage: string): Record<string, string> {
  const { traceId, sampled } = ctx.trace ?? newTrace();
  const delegation = { [depthHeader]: String(ctx.depth + 1), [lineageHeader]: lineage };
  return { ...traceHeaders({ traceId, sampled, spanId }, spanId), ...delegation };
}

/** The headers of one call to a registered agent: ours, and its credential at its own origin alone (abuse 18). */
export class AgentHeaders implements HopHeaders {
  readonly sent = new Set<string>();
  private renewals = 0;

  constructor(
    private readonly owner: CredentialOwner,
    private readonly own: Record<string, string>,
    /** Opens the sealed credential, when there is one; called once for each request that may carry it. */
    private readonly open: (() => Credential | undefined) | undefined,
    private readonly credentials: RemoteCredentials,
  ) {}

  async of(url: string, limits: HopLimits): Promise<Record<string, string>> {
    const credential = this.open && isSameOrigin(asHttpUrl(url), this.owner.url) ? this.open() : undefined;
    if (credential === undefined) return this.own;
    const asked = this.credentials.headers(this.owner.id, credential);
    const proof = credential.type === 'oauth2' ? await withinLimits(asked, limits) : await asked;
    // Whole, and without the scheme before it.
    for (const value of Object.values(proof)) this.sent.add(value).add(value.split(' ').at(-1)!);
    return { ...proof, ...this.own };
  }

  renew(): boolean {
    return this.renewals++ === 0 && this.credentials.forget(this.owner.id);
  }
}

/** A gRPC target has no scheme: it is compared as the https URL of its host and port. */
function asHttpUrl(url: string): string {
  return /^https?:/i.test(url) ? url : `https://${url}`;
}

/** The token is fetched for everybody who waits for it, so its own limits do not follow from this call's. */
async function withinLimits<T>(work: Promise<T>, { deadline, signals }: HopLimits): Promise<T> {
  const { signal, end } = timeoutSignal(Math.ceil(deadline.leftMs), [...signals]);
  const given = new Promise<never>((_, reject) => {
    const give = () => reject(new RialtoError(signals.some(({ aborted }) => aborted) ? 'canceled' : 'remote_timeout'));
    if (signal.aborted) give();
    else signal.addEventListener('abort', give, { once: true });
  });
  return Promise.race([work, given]).finally(end);
}
