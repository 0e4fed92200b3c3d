import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus, type Act, type DispatchFacts, type VerbCall } from '../kernel/verb-bus.js';
import { SafeFetch } from '../platform/http/safe-fetch.js';
import { keptJson } from '../platform/secrets/kept-json.js';
import { ToolLimits } from '../policy/tool-limits.service.js';
import { toolOutput, type BridgeReply } from '../protocol/a2a/bridge-call.js';
import type { StreamResponse, Task } from '../protocol/a2a/model.js';
import type { RegisteredAgent } from '../registry/registry.types.js';
import { Deadline } from './deadline.js';
import { bridgeEndpoint, chooseEndpoints, isNotHere, speaksJsonRpc, withCustomaryPaths } from './endpoint-choice.js';
import { withPushAddress } from './push-address.js';
import { RemoteAgents, type OpenHop } from './remote-agents.js';
import type { SendReply } from './send-reply.js';
import type { MessageCall, RemoteCall, SkillCall } from './remote-call.types.js';
import type { RemoteTaskKeeper } from './remote-task-keeper.port.js';
import { BridgeTransport } from './transports/bridge.transport.js';
import type { Watch } from './transports/remote-wait.js';
import { sendAsSkillCall } from './transports/sdk-skill-call.js';
import { SdkTransport, type SdkHop } from './transports/sdk.transport.js';

export type { SendReply } from './send-reply.js';

/**
 * The one way out to remote A2A agents. Each method wraps itself in the verb, so that no caller can forget the decision; the
 * whole hop has one deadline. Errors: `denied`, `remote_timeout`, `remote_transport` (`data.httpStatus`),
 * `remote_invalid_response`, `remote_error`, `remote_task_failed`, `url_not_allowed`, `canceled`.
 */
@Injectable()
export class A2AClientService {
  private keeper?: RemoteTaskKeeper;

  constructor(
    private readonly verbs: VerbBus,
    private readonly agents: RemoteAgents,
    private readonly bridge: BridgeTransport,
    private readonly sdk: SdkTransport,
    private readonly safeFetch: SafeFetch,
    private readonly limits: ToolLimits,
  ) {}

  /** Throws `url_not_allowed` when one of these is an address that nothing may be posted to; asked before somebody is chosen. */
  requirePostable(...urls: readonly (string | undefined)[]): void {
    for (const url of urls) if (url !== undefined) this.safeFetch.check(url);
  }

  /** Gives remote tasks that do not end at once to one who keeps them; without one they are waited for, and canceled at the deadline. */
  keepTasksWith(keeper: RemoteTaskKeeper): void {
    this.keeper = keeper;
  }

  /**
   * Calls a skill in the bridge's wire form and waits for its answer (RE-15…RE-29); over the SDK where no JSON-RPC is offered. The
   * answer may be a task of ours that goes on (remote-task-keeper.port.ts).
   */
  invokeSkill(ctx: CallContext, call: SkillCall): Promise<BridgeReply> {
    const { agent, skillId, args, sessionId } = call;
    const { row, card } = agent;
    const invoke = async (hop: OpenHop, act: Act): Promise<BridgeReply> => {
      await this.limits.admit(ctx, call.verb);
      const { keeper } = this;
      const admission = await keeper?.admit(ctx, call);
      const watch: Watch | undefined =
        admission && ((first, ...how) => keeper!.keep(act, { ...call, ...admission }, first, ...how));
      const pushUrl = admission?.pushUrl;
      // Whoever is told elsewhere does not wait here: an agent that blocks would answer too late, and leave no task to follow.
      const blocking = admission && (call.webhookUrl !== undefined || call.thread) ? false : undefined;
      const reply = speaksJsonRpc(card)
        ? await this.bridge.call(
            { ...hop, endpoint: bridgeEndpoint(card, row.url) },
            { skillId, args, sessionId, pushUrl, blocking, baseUrl: row.url },
            watch,
          )
        : await this.anywhere(agent, hop, (at) =>
            sendAsSkillCall(this.sdk, at, { skillId, args, messageId: newId(), pushUrl, blocking }, watch),
          );
      act.answer = answerOf(reply, call.dispatch);
      return reply;
    };
    return this.act(ctx, call, 'a2a_invoke', args, (hop, act) =>
      this.limits.around(ctx, row.id, () => invoke(hop, act)),
    );
  }

  /** Sends a message; the reply may be a task that is still working. */
  send(ctx: CallContext, call: MessageCall): Promise<SendReply> {
    const { agent, params, pushUrl } = call;
    return this.act(ctx, call, 'a2a_invoke', call.args ?? {}, (hop) =>
      this.anywhere(agent, hop, (at) => withPushAddress(pushUrl, (url) => this.sdk.send(at, params, url))),
    );
  }

  /** Sends a message and follows its events; leaving the iterator ends the connection. */
  stream(ctx: CallContext, call: MessageCall): AsyncGenerator<StreamResponse, void> {
    const { params, pushUrl } = call;
    const deadline = new Deadline(call.timeoutMs);
    return this.verbs.aroundStream(verbOf(ctx, call, 'a2a_invoke', call.args ?? {}), () =>
      this.follow(ctx, call, deadline, (at) =>
        withPushAddress(pushUrl, (url) => opened(this.sdk.stream(at, params, url))),
      ),
    );
  }

  /** A look at a task is part of the act that began it: decided again, with the same arguments, and no act of its own. */
  async getTask(
    ctx: CallContext,
    call: RemoteCall & { readonly taskId: string; readonly historyLength?: number },
  ): Promise<Task> {
    const { agent, taskId, historyLength } = call;
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    return this.agents.visit(ctx, agent, { ...call, deadline }, (hop) =>
      this.anywhere(agent, hop, (at) => this.sdk.getTask(at, taskId, historyLength)),
    );
  }

  /** Follows a task from now on; decided like a look. */
  async *subscribe(
    ctx: CallContext,
    call: RemoteCall & { readonly taskId: string },
  ): AsyncGenerator<StreamResponse, void> {
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    yield* this.follow(ctx, call, deadline, (at) => opened(this.sdk.subscribe(at, call.taskId)));
  }

  cancel(ctx: CallContext, call: RemoteCall & { readonly taskId: string }): Promise<Task> {
    const { agent, taskId } = call;
    return this.act(ctx, call, 'a2a_cancel', {}, (hop) =>
      this.anywhere(agent, hop, (at) => this.sdk.cancelTask(at, taskId)),
    );
  }

  private async requirePermitted(ctx: CallContext, call: RemoteCall): Promise<void> {
    if (await this.verbs.permits(verbOf(ctx, call, 'a2a_invoke', call.args ?? {}))) return;
    throw new RialtoError('denied', { message: 'its caller may no longer use this agent', data: { verb: call.verb } });
  }

  private async *follow(
    ctx: CallContext,
    call: RemoteCall,
    deadline: Deadline,
    stream: (at: SdkHop) => ReturnType<typeof opened>,
  ): AsyncGenerator<StreamResponse, void> {
    const { agent } = call;
    const open = (hop: OpenHop) => this.anywhere(agent, hop, stream);
    const { first, rest } = await this.agents.visit(ctx, agent, { ...call, deadline }, open);
    try {
      if (!first.done) yield first.value;
      yield* rest;
    } finally {
      await rest.return();
    }
  }

  private act<T>(
    ctx: CallContext,
    call: RemoteCall,
    action: 'a2a_invoke' | 'a2a_cancel',
    args: JsonObject,
    work: (hop: OpenHop, act: Act) => Promise<T>,
  ): Promise<T> {
    const deadline = new Deadline(call.timeoutMs);
    return this.verbs.around(verbOf(ctx, call, action, args), (act) =>
      this.agents.visit(ctx, call.agent, { ...call, deadline }, (hop) => work(hop, act)),
    );
  }

  /** The endpoints of the card in order, then the customary paths; the next one only where nobody lives (AN-30). */
  private async anywhere<T>(
    { row, card }: RegisteredAgent,
    hop: OpenHop,
    work: (hop: SdkHop) => Promise<T>,
  ): Promise<T> {
    const [first = bridgeEndpoint(card, row.url), ...others] = card ? chooseEndpoints(card) : [];
    const [, ...customary] = withCustomaryPaths(first, row.url);
    try {
      return await this.attempt({ ...hop, endpoint: first }, work);
    } catch (failure) {
      if (!isNotHere(failure)) throw failure;
      for (const endpoint of [...others, ...customary]) {
        const found = await this.attempt({ ...hop, endpoint }, work).then(
          (value) => ({ value }),
          (error: unknown) => (isNotHere(error) ? undefined : Promise.reject(RialtoError.from(error))),
        );
        if (found) return found.value;
      }
      throw failure;
    }
  }

  private async attempt<T>(hop: SdkHop, work: (hop: SdkHop) => Promise<T>): Promise<T> {
    try {
      return await work(hop);
    } catch (error) {
      const isRefused = error instanceof RialtoError && error.data?.httpStatus === 401;
      if (!isRefused || !hop.headers.renew()) throw error;
      return work(hop);
    }
  }
}

function verbOf(ctx: CallContext, call: RemoteCall, action: 'a2a_invoke' | 'a2a_cancel', args: JsonObject): VerbCall {
  const { row, card } = call.agent;
  const { id, verb, legacyAlias, skillId, sessionId, timeoutMs, dispatch } = call;
  const agent = { id: row.id, slug: row.slug, url: row.url, costPerTask: card?.costPerTask };
  const resource = { type: 'Skill', id: verb, parent: row.slug } as const;
  return { id, verb, action, resource, agent, skillId, sessionId, args, timeoutMs, dispatch, legacyAlias, ctx };
}

/** What is remembered of a reply: of the call of a tool nothing but the task. */
function answerOf(reply: BridgeReply, dispatch: DispatchFacts | undefined): Act['answer'] {
  const taskId = reply.kind === 'task' ? reply.taskId : undefined;
  return { taskId, output: dispatch && keptJson(toolOutput(reply)) };
}

/** A stream whose first event is there: what fails before it may be asked elsewhere, what fails later may not. */
async function opened(events: AsyncGenerator<StreamResponse, void>) {
  return { first: await events.next(), rest: events };
}
