import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import { VerbBus, type Act, type DispatchFacts, type VerbCall } from '../kernel/verb-bus.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { keptJson } from '../platform/secrets/kept-json.js';
import { ToolLimits } from '../policy/tool-limits.js';
import { toolOutput, type BridgeReply } from '../protocol/a2a/remote/bridge-call.js';
import type { StreamResponse, Task } from '../protocol/a2a/model.js';
import { takesText } from '../protocol/a2a/remote/skill-input.js';
import type { RegisteredAgent } from '../registry/registry.types.js';
import { Deadline } from '../kernel/deadline.js';
import {
  bridgeEndpoint,
  chooseEndpoints,
  isNotHere,
  speaksJsonRpc,
  withCustomaryPaths,
  type Endpoint,
} from './transports/endpoint-choice.js';
import { withPushAddress } from './transports/push-address.js';
import { RemoteAgents, type OpenHop } from './requests/remote-agents.js';
import type { SendReply } from './transports/send-reply.js';
import type { MessageCall, RemoteCall, SkillCall } from './remote-call.types.js';
import type { RemoteTaskKeeper } from './remote-task-keeper.port.js';
import { BridgeTransport } from './transports/bridge.transport.js';
import type { Watch } from './transports/remote-wait.js';
import { sendAsSkillCall } from './transports/sdk-skill-call.js';
import { SdkTransport, type SdkHop } from './transports/sdk.transport.js';

export type { SendReply } from './transports/send-reply.js';

/** Number of newest tasks that `findTask` searches for a message, and number of messages it reads of each. */
const findAmong = 50;

/**
 * Client for remote A2A agents, and the only way out to them. Each method runs inside the verb bus, so that no caller
 * can skip the policy decision; one deadline covers the whole hop. Errors: `denied`, `remote_timeout`,
 * `remote_transport` (`data.httpStatus`), `remote_invalid_response`, `remote_error`, `remote_task_failed`,
 * `url_not_allowed`, `canceled`.
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

  /**
   * Throws `url_not_allowed` when the gateway may not post to one of these URLs; callers check this before they choose
   * an agent.
   */
  requirePostable(...urls: readonly (string | undefined)[]): void {
    for (const url of urls) if (url !== undefined) this.safeFetch.check(url);
  }

  /**
   * Sets the keeper of remote tasks that do not end at once. Without a keeper the call waits for the task, and cancels
   * it at the deadline.
   */
  keepTasksWith(keeper: RemoteTaskKeeper): void {
    this.keeper = keeper;
  }

  /**
   * Calls a skill in the bridge's wire form and waits for its answer (RE-15…RE-29); uses the SDK when the agent offers
   * no JSON-RPC. The answer may be a task of this gateway that continues (remote-task-keeper.port.ts).
   */
  invokeSkill(ctx: CallContext, call: SkillCall): Promise<BridgeReply> {
    const { agent, skillId, args, sessionId } = call;
    const { row } = agent;
    const skill = agent.card?.skills.find(({ id }) => id === skillId);
    const asText = skill && takesText(skill, agent.card?.defaultInputModes);
    const card = agent.card && { ...agent.card, interfaces: this.callable(agent.card.interfaces) };
    const invoke = async (hop: OpenHop, act: Act): Promise<BridgeReply> => {
      await this.limits.admit(ctx, call.verb);
      const { keeper } = this;
      const admission = await keeper?.admit(ctx, call);
      const watch: Watch | undefined =
        admission && ((first, ...how) => keeper!.keep(act, { ...call, ...admission }, first, ...how));
      const pushUrl = admission?.pushUrl;
      // A call with a webhook or a thread gets its result there and does not wait here. A blocking agent would answer
      // too late, and leave no task to follow.
      const blocking = admission && (call.webhookUrl !== undefined || call.thread) ? false : undefined;
      const reply = speaksJsonRpc(card)
        ? await this.bridge.call(
            { ...hop, endpoint: bridgeEndpoint(card, row.url) },
            { skillId, args, takesText: asText, sessionId, pushUrl, blocking, baseUrl: row.url },
            watch,
          )
        : await this.anywhere(agent, hop, (at) =>
            sendAsSkillCall(
              this.sdk,
              at,
              { skillId, args, takesText: asText, sessionId, messageId: newId(), pushUrl, blocking },
              watch,
            ),
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

  /**
   * Returns a task as it is now. A poll belongs to the act that began the task: the policy is decided again with the
   * same arguments, but no new act is recorded.
   */
  async getTask(
    ctx: CallContext,
    call: RemoteCall & { readonly taskId: string; readonly historyLength?: number },
  ): Promise<Task> {
    const { agent, taskId, historyLength } = call;
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    return this.agents.withConnection(ctx, agent, { ...call, deadline }, (hop) =>
      this.anywhere(agent, hop, (at) => this.sdk.getTask(at, taskId, historyLength)),
    );
  }

  /** Follows a task from now on; the policy is decided as for `getTask`. */
  async *subscribe(
    ctx: CallContext,
    call: RemoteCall & { readonly taskId: string },
  ): AsyncGenerator<StreamResponse, void> {
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    yield* this.follow(ctx, call, deadline, (at) => opened(this.sdk.subscribe(at, call.taskId)));
  }

  /**
   * Finds the task that the agent created for a message, among its newest tasks. Returns undefined when there is none,
   * or when the agent does not list its tasks.
   */
  async findTask(ctx: CallContext, call: RemoteCall & { readonly messageId: string }): Promise<Task | undefined> {
    const { agent, messageId } = call;
    const deadline = new Deadline(call.timeoutMs);
    await this.requirePermitted(ctx, call);
    const query = { pageSize: findAmong, historyLength: findAmong };
    return this.agents.withConnection(ctx, agent, { ...call, deadline }, (hop) =>
      this.anywhere(agent, hop, async (at) => {
        if (at.endpoint.version !== '1.0') return undefined;
        const { tasks } = await this.sdk.listTasks(at, query);
        const found = tasks.find(({ history = [] }) => history.some((message) => message.messageId === messageId));
        return found && this.sdk.getTask(at, found.id);
      }),
    );
  }

  cancel(ctx: CallContext, call: RemoteCall & { readonly taskId: string }): Promise<Task> {
    const { agent, taskId } = call;
    return this.act(ctx, call, 'a2a_cancel', {}, (hop) =>
      this.anywhere(agent, hop, (at) => this.sdk.cancelTask(at, taskId)),
    );
  }

  private async requirePermitted(ctx: CallContext, call: RemoteCall): Promise<void> {
    if (await this.verbs.permits(verbOf(ctx, call, 'a2a_invoke', call.args ?? {}))) return;
    throw new RialtoError('denied', {
      message: 'the caller of this task may no longer use this agent',
      data: { verb: call.verb },
    });
  }

  private async *follow(
    ctx: CallContext,
    call: RemoteCall,
    deadline: Deadline,
    stream: (at: SdkHop) => ReturnType<typeof opened>,
  ): AsyncGenerator<StreamResponse, void> {
    const { agent } = call;
    const open = (hop: OpenHop) => this.anywhere(agent, hop, stream);
    const { first, rest } = await this.agents.withConnection(ctx, agent, { ...call, deadline }, open);
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
      this.agents.withConnection(ctx, call.agent, { ...call, deadline }, (hop) => work(hop, act)),
    );
  }

  /**
   * Tries the endpoints of the card in order, then the customary paths; goes to the next one only when no A2A server
   * is at the URL (AN-30).
   */
  private async anywhere<T>(
    { row, card }: RegisteredAgent,
    hop: OpenHop,
    work: (hop: SdkHop) => Promise<T>,
  ): Promise<T> {
    const [first = bridgeEndpoint(card, row.url), ...others] = card ? this.callable(chooseEndpoints(card)) : [];
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

  /**
   * Keeps the endpoints with a URL that may be called. Keeps all when none may be called, so that the first one causes
   * the error.
   */
  private callable<At extends Endpoint>(endpoints: At[]): At[] {
    const allowed = endpoints.filter(({ url, binding }) => binding === 'GRPC' || this.mayCall(url));
    return allowed.length > 0 ? allowed : endpoints;
  }

  private mayCall(url: string): boolean {
    try {
      this.safeFetch.check(url);
      return true;
    } catch {
      return false;
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
  const { row, card, tools } = call.agent;
  const { id, verb, calledAs, skillId, sessionId, timeoutMs, dispatch } = call;
  const agent = { id: row.id, slug: row.slug, url: row.url, costPerTask: card?.costPerTask };
  const resource = { type: 'Skill', id: verb, parent: row.slug } as const;
  const legacyAlias = tools.find((tool) => tool.skillId === skillId)?.alias;
  const names = { verb, legacyAlias, calledAs };
  return { id, ...names, action, resource, agent, skillId, sessionId, args, timeoutMs, dispatch, ctx };
}

/** Returns the part of a reply that the act records: for a tool call only the task id. */
function answerOf(reply: BridgeReply, dispatch: DispatchFacts | undefined): Act['answer'] {
  const taskId = reply.kind === 'task' ? reply.taskId : undefined;
  return { taskId, output: dispatch && keptJson(toolOutput(reply)) };
}

/**
 * Opens a stream and waits for its first event: a failure before that event may be retried at another endpoint, a
 * later one may not.
 */
async function opened(events: AsyncGenerator<StreamResponse, void>) {
  return { first: await events.next(), rest: events };
}
