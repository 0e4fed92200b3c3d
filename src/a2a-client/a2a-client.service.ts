import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { newId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import type { Act } from '../kernel/verb-bus.js';
import type { DispatchFacts } from '../kernel/verbs.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { keptJson } from '../platform/secrets/kept-json.js';
import { withoutQuery } from '../platform/secrets/url-queries.js';
import { ToolLimits } from '../policy/tool-limits.js';
import { toolOutput, type BridgeReply } from '../protocol/a2a/remote/bridge-call.js';
import type { StreamResponse, Task } from '../protocol/a2a/model.js';
import { takesText } from '../protocol/a2a/remote/skill-input.js';
import { cleartextRefusal } from '../registry/agent-encryption.js';
import { bridgeEndpoint, speaksJsonRpc } from './transports/endpoint-choice.js';
import { withPushAddress } from './transports/push-address.js';
import { AgentOperations, openStream } from './requests/agent-operations.js';
import type { OpenHop } from './requests/remote-agents.js';
import type { SendReply } from './transports/send-reply.js';
import type { MessageCall, RemoteCall, SkillCall } from './remote-call.types.js';
import type { RemoteTaskKeeper } from './remote-task-keeper.port.js';
import { BridgeTransport } from './transports/bridge.transport.js';
import type { Watch } from './transports/remote-wait.js';
import { sendAsSkillCall } from './transports/sdk-skill-call.js';
import { SdkTransport } from './transports/sdk.transport.js';

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
    private readonly operations: AgentOperations,
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
    for (const url of urls) if (url !== undefined) this.safeFetch.checkUrl(url);
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
    const card = agent.card && { ...agent.card, interfaces: this.operations.callable(agent.card.interfaces) };
    const invoke = async (hop: OpenHop, act: Act): Promise<BridgeReply> => {
      await this.limits.countToolCall(ctx, call.verb);
      const { keeper } = this;
      const admission = await keeper?.admit(ctx, call);
      const watch: Watch | undefined =
        admission && ((first, ...how) => keeper!.keepTask(act, { ...call, ...admission }, first, ...how));
      const pushUrl = admission?.pushUrl;
      // A call with a webhook or a thread gets its result there and does not wait here. A blocking agent would answer
      // too late, and leave no task to follow.
      const blocking = admission && (call.webhookUrl !== undefined || call.thread) ? false : undefined;
      const reply = speaksJsonRpc(card)
        ? await this.bridge.callSkill(
            { ...hop, endpoint: bridgeEndpoint(card, row.url) },
            { skillId, args, takesText: asText, sessionId, pushUrl, blocking, baseUrl: row.url },
            watch,
          )
        : await this.operations.atEndpoints(agent, hop, (at) =>
            sendAsSkillCall(
              this.sdk,
              at,
              { skillId, args, takesText: asText, sessionId, messageId: newId(), pushUrl, blocking },
              watch,
            ),
          );
      act.answer = recordedAnswer(reply, call.dispatch);
      return reply;
    };
    const refusal = cleartextRefusal(agent, [{ data: args }]);
    return this.operations.runAct(ctx, { ...withReceivers(call), refusal }, 'a2a_invoke', args, (hop, act) =>
      this.limits.around(ctx, row.id, () => invoke(hop, act)),
    );
  }

  /** Sends a message; the reply may be a task that is still working. */
  send(ctx: CallContext, call: MessageCall): Promise<SendReply> {
    const { agent, params, pushUrl } = call;
    return this.operations.runAct(ctx, withContent(call), 'a2a_invoke', call.args ?? {}, async (hop) => {
      await this.limits.countToolCall(ctx, call.verb);
      return this.operations.atEndpoints(agent, hop, (at) =>
        withPushAddress(pushUrl, (url) => this.sdk.send(at, params, url)),
      );
    });
  }

  /** Sends a message and follows its events; leaving the iterator ends the connection. */
  stream(ctx: CallContext, call: MessageCall): AsyncGenerator<StreamResponse, void> {
    const { params, pushUrl } = call;
    let counted: Promise<void> | undefined;
    return this.operations.stream(ctx, withContent(call), async (at) => {
      await (counted ??= this.limits.countToolCall(ctx, call.verb));
      return withPushAddress(pushUrl, (url) => openStream(this.sdk.stream(at, params, url)));
    });
  }

  /**
   * Returns a task as it is now. A poll belongs to the act that began the task: the policy is decided again with the
   * same arguments, but no new act is recorded.
   */
  getTask(
    ctx: CallContext,
    call: RemoteCall & { readonly taskId: string; readonly historyLength?: number },
  ): Promise<Task> {
    const { taskId, historyLength } = call;
    return this.operations.pollAgent(ctx, call, (at) => this.sdk.getTask(at, taskId, historyLength));
  }

  /** Follows a task from now on; the policy is decided as for `getTask`. */
  subscribe(ctx: CallContext, call: RemoteCall & { readonly taskId: string }): AsyncGenerator<StreamResponse, void> {
    return this.operations.subscribe(ctx, call, (at) => openStream(this.sdk.subscribe(at, call.taskId)));
  }

  /**
   * Finds the task that the agent created for a message, among its newest tasks. Returns undefined when there is none,
   * or when the agent does not list its tasks.
   */
  findTask(ctx: CallContext, call: RemoteCall & { readonly messageId: string }): Promise<Task | undefined> {
    const { messageId } = call;
    const query = { pageSize: findAmong, historyLength: findAmong };
    return this.operations.pollAgent(ctx, call, async (at) => {
      if (at.endpoint.version !== '1.0') return undefined;
      const { tasks } = await this.sdk.listTasks(at, query);
      const found = tasks.find(({ history = [] }) => history.some((message) => message.messageId === messageId));
      return found && this.sdk.getTask(at, found.id);
    });
  }

  cancel(ctx: CallContext, call: RemoteCall & { readonly taskId: string }): Promise<Task> {
    const { agent, taskId } = call;
    return this.operations.runAct(ctx, call, 'a2a_cancel', {}, (hop) =>
      this.operations.atEndpoints(agent, hop, (at) => this.sdk.cancelTask(at, taskId)),
    );
  }
}

/** Returns the part of a reply that the act records: for a tool call only the task id. */
function recordedAnswer(reply: BridgeReply, dispatch: DispatchFacts | undefined): Act['answer'] {
  const taskId = reply.kind === 'task' ? reply.taskId : undefined;
  return { taskId, output: dispatch && keptJson(toolOutput(reply)) };
}

/**
 * Adds the receivers of the result, without their tokens, to what an approval of the call is bound to. Approvers see no
 * query of their URLs.
 */
function withReceivers(call: SkillCall): SkillCall {
  const { args, webhookUrl, thread } = call;
  if (webhookUrl === undefined && !thread) return call;
  const receiversWith = (shown: (url: string) => string): JsonObject => ({
    ...(webhookUrl !== undefined && { webhook_url: shown(webhookUrl) }),
    ...(thread && { thread: { url: shown(thread.url), id: thread.id } }),
  });
  return { ...call, content: { args, ...receiversWith(withoutQuery) }, receivers: receiversWith((url) => url) };
}

function withContent(call: MessageCall): MessageCall {
  const { messageId: _, ...content } = call.params.message;
  const refusal = cleartextRefusal(call.agent, content.parts);
  return { ...call, content: content as unknown as JsonObject, refusal, attemptKey: call.key };
}
