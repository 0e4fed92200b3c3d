import { Injectable } from '@nestjs/common';
import { Deadline } from '../../kernel/abort.js';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { VerbBus, type Act, type VerbCall } from '../../kernel/verb-bus.js';
import { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { StreamResponse } from '../../protocol/a2a/model.js';
import { addressesOf } from '../../registry/agent-addresses.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';
import type { RemoteCall } from '../remote-call.types.js';
import {
  bridgeEndpoint,
  chooseEndpoints,
  isNotHere,
  withCustomaryPaths,
  type Endpoint,
} from '../transports/endpoint-choice.js';
import type { SdkHop } from '../transports/sdk.transport.js';
import { RemoteAgents, type OpenHop } from './remote-agents.js';

type Action = 'a2a_invoke' | 'a2a_cancel';
type OpenStream = (at: SdkHop) => ReturnType<typeof openStream>;

/**
 * Runs operations at registered agents: decides the policy, opens the connection, and tries the endpoints of the agent.
 * One deadline covers the whole operation.
 */
@Injectable()
export class AgentOperations {
  constructor(
    private readonly verbs: VerbBus,
    private readonly agents: RemoteAgents,
    private readonly safeFetch: SafeFetch,
  ) {}

  /** Runs work as an act of its own. */
  runAct<T>(
    ctx: CallContext,
    call: RemoteCall,
    action: Action,
    args: JsonObject,
    work: (hop: OpenHop, act: Act) => Promise<T>,
  ): Promise<T> {
    const deadline = new Deadline(call.timeoutMs);
    const check = () => this.requireSendable(ctx, call, deadline);
    return this.verbs.around({ ...verbCall(ctx, call, action, args), check }, async (act) => {
      check();
      return this.agents.withConnection(ctx, call.agent, { ...call, deadline }, (hop) => work(hop, act));
    });
  }

  /** Opens a stream as an act of its own, and yields its events. */
  stream(ctx: CallContext, call: RemoteCall, open: OpenStream): AsyncGenerator<StreamResponse, void> {
    const deadline = new Deadline(call.timeoutMs);
    const check = () => this.requireSendable(ctx, call, deadline);
    return this.verbs.aroundStream({ ...verbCall(ctx, call, 'a2a_invoke', call.args ?? {}), check }, () => {
      check();
      return this.followStream(ctx, call, deadline, open);
    });
  }

  private requireSendable(ctx: CallContext, { agent, refusal }: RemoteCall, deadline: Deadline): void {
    if (refusal) throw refusal;
    this.agents.requireNoLoop(ctx, agent, deadline.leftMs);
  }

  /**
   * Runs work at the endpoints of the agent as part of the act that began the task: the policy is decided again with
   * the same arguments, but no new act is recorded.
   */
  async pollAgent<T>(ctx: CallContext, call: RemoteCall, work: (at: SdkHop) => Promise<T>): Promise<T> {
    const { agent } = call;
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    return this.agents.withConnection(ctx, agent, { ...call, deadline }, (hop) => this.atEndpoints(agent, hop, work));
  }

  /** Opens a stream, and yields its events; the policy is decided as for `pollAgent`. */
  async *subscribe(ctx: CallContext, call: RemoteCall, open: OpenStream): AsyncGenerator<StreamResponse, void> {
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    yield* this.followStream(ctx, call, deadline, open);
  }

  private async requirePermitted(ctx: CallContext, call: RemoteCall): Promise<void> {
    if (await this.verbs.permits(verbCall(ctx, call, 'a2a_invoke', call.args ?? {}))) return;
    throw new RialtoError('denied', {
      message: 'the caller of this task may no longer use this agent',
      data: { verb: call.verb },
    });
  }

  private async *followStream(
    ctx: CallContext,
    call: RemoteCall,
    deadline: Deadline,
    open: OpenStream,
  ): AsyncGenerator<StreamResponse, void> {
    const { agent } = call;
    const openAnywhere = (hop: OpenHop) => this.atEndpoints(agent, hop, open);
    const { first, rest } = await this.agents.withConnection(ctx, agent, { ...call, deadline }, openAnywhere);
    try {
      if (!first.done) yield first.value;
      yield* rest;
    } finally {
      await rest.return();
    }
  }

  /**
   * Tries the endpoints of the card in order, then the customary paths; goes to the next one only when no A2A server
   * is at the URL (AN-30).
   */
  async atEndpoints<T>({ row, card }: RegisteredAgent, hop: OpenHop, work: (hop: SdkHop) => Promise<T>): Promise<T> {
    const [first = bridgeEndpoint(card, row.url), ...others] = card ? this.callable(chooseEndpoints(card)) : [];
    const [, ...customary] = withCustomaryPaths(first, row.url);
    try {
      return await this.attemptHop({ ...hop, endpoint: first }, work);
    } catch (failure) {
      if (!isNotHere(failure)) throw failure;
      for (const endpoint of [...others, ...customary]) {
        const found = await this.attemptHop({ ...hop, endpoint }, work).then(
          (value) => ({ value }),
          (error: unknown) => (isNotHere(error) ? undefined : Promise.reject(RialtoError.from(error))),
        );
        if (found) return found.value;
      }
      throw failure;
    }
  }

  /**
   * Keeps the endpoints with a URL that may be called. Keeps all when none may be called, so that the first one causes
   * the error.
   */
  callable<At extends Endpoint>(endpoints: At[]): At[] {
    const allowed = endpoints.filter(({ url, binding }) => binding === 'GRPC' || this.mayCall(url));
    return allowed.length > 0 ? allowed : endpoints;
  }

  private mayCall(url: string): boolean {
    try {
      this.safeFetch.checkUrl(url);
      return true;
    } catch {
      return false;
    }
  }

  private async attemptHop<T>(hop: SdkHop, work: (hop: SdkHop) => Promise<T>): Promise<T> {
    try {
      return await work(hop);
    } catch (error) {
      const isRefused = error instanceof RialtoError && error.data?.httpStatus === 401;
      if (!isRefused || !hop.headers.renew()) throw error;
      return work(hop);
    }
  }
}

function verbCall(ctx: CallContext, call: RemoteCall, action: Action, args: JsonObject): VerbCall {
  const { row, card, tools } = call.agent;
  const { id, verb, calledAs, skillId, sessionId, timeoutMs, dispatch, message, content, receivers, attemptKey } = call;
  const agent = { id: row.id, slug: row.slug, url: row.url, costPerTask: card?.costPerTask };
  const resource = { type: 'Skill', id: verb, parent: row.slug } as const;
  const legacyAlias = tools.find((tool) => tool.skillId === skillId)?.alias;
  const names = { verb, legacyAlias, calledAs };
  const sent = { args, message, content, receivers, attemptKey, target: addressesOf(call.agent) };
  return { id, ...names, action, resource, agent, skillId, sessionId, ...sent, timeoutMs, dispatch, ctx };
}

/**
 * Opens a stream and waits for its first event: a failure before that event may be retried at another endpoint, a
 * later one may not.
 */
export async function openStream(events: AsyncGenerator<StreamResponse, void>) {
  return { first: await events.next(), rest: events };
}
