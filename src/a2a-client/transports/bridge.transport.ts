import { systemClock, type Clock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId } from '../../kernel/ids.js';
import type { JsonObject } from '../../kernel/json.js';
import {
  decodeBridgeReply,
  encodeBridgeCall,
  type BridgeReply,
  type WireCall,
} from '../../protocol/a2a/remote/bridge-call.js';
import type { A2aVersion } from '../../protocol/a2a/model.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import { Deadline } from '../../kernel/abort.js';
import { isNotHere, withCustomaryPaths, type Endpoint } from './endpoint-choice.js';
import { withPushAddress } from './push-address.js';
import { answerWithout, errorWithout } from './sent-credentials.js';
import type { HopLimits, RemoteHop } from './remote-hop.js';
import { isSettled, waitOrCancel, type RemoteTask, type Watch } from './remote-wait.js';
import { parseLongJson, restAfter } from '../../platform/turns.js';

/** One call of one skill in the bridge's own wire form. */
export interface BridgeSkillCall {
  readonly skillId: string;
  readonly args: JsonObject;
  /** True when the skill takes plain text: a lone `message` is sent as text (skill-input.ts). */
  readonly takesText?: boolean;
  readonly sessionId: string;
  /** URL to which the agent may push updates of its task. */
  readonly pushUrl?: string;
  /** False asks the agent to return its task at once; absent leaves it to the agent's version. */
  readonly blocking?: false;
  /** URL that the agent was registered with: the customary paths start here (AN-30). */
  readonly baseUrl: string;
}

const maxReplyBytes = 4 * 1_048_576;
const cancelDeadlineMs = 1_000;
const pace = { firstMs: 250, mostMs: 2_000 };
const taskMethods: Record<A2aVersion, { get: string; cancel: string }> = {
  '1.0': { get: 'GetTask', cancel: 'CancelTask' },
  '0.3': { get: 'tasks/get', cancel: 'tasks/cancel' },
};

/**
 * Transport of the one-call wire form (RE-15…RE-20): a single POST for each attempt through the safe client, without
 * the SDK; a task that the call starts is given to `watch`. A request is repeated only when the first one cannot have
 * had an effect: after 404 or 405 (AN-30), or after 401 when the gateway's token can be renewed. Errors:
 * `remote_timeout`, `remote_transport` (`data.httpStatus`), `remote_invalid_response`, `remote_error`,
 * `remote_task_failed`, `url_not_allowed`, `canceled`; `data.taskId` once a task is known.
 */
export class BridgeTransport {
  private lastRequestId = 0;

  constructor(
    private readonly client: SafeFetch,
    private readonly random: () => number = Math.random,
    private readonly clock: Clock = systemClock,
  ) {}

  /** Calls the agent and waits for the answer: a message, or a task that ended well or asks its caller. */
  async callSkill(hop: RemoteHop, call: BridgeSkillCall, watch: Watch = waitOrCancel): Promise<BridgeReply> {
    const { reply, endpoint } = await this.sendFirst(hop, call);
    if (reply.kind === 'message' || isSettled(reply)) return reply;
    const { deadline, signals } = hop;
    const remote = this.taskAt({ ...hop, endpoint });
    return watch(reply, remote, { deadline, signals, pace: { ...pace, random: this.random } });
  }

  private async sendFirst(hop: RemoteHop, call: BridgeSkillCall): Promise<{ reply: BridgeReply; endpoint: Endpoint }> {
    const send = async (endpoint: Endpoint) => ({ endpoint, reply: await this.send({ ...hop, endpoint }, call) });
    try {
      return await send(hop.endpoint);
    } catch (error) {
      if (!isNotHere(error)) throw error;
      for (const endpoint of withCustomaryPaths(hop.endpoint, call.baseUrl).slice(1)) {
        const found = await send(endpoint).catch((next: unknown) => {
          if (!isNotHere(next)) throw next;
        });
        if (found) return found;
      }
      throw error;
    }
  }

  private send(hop: RemoteHop, { pushUrl, baseUrl: _, ...fields }: BridgeSkillCall): Promise<BridgeReply> {
    const { version, tenant } = hop.endpoint;
    const messageId = newId();
    return withPushAddress(pushUrl, async (url) => {
      await restAfter(fields.args);
      const requestId = this.nextRequestId();
      const call = { ...fields, version, requestId, messageId, tenant, pushUrl: url };
      return this.postCall(hop, requestId, encodeBridgeCall(call));
    });
  }

  private taskAt(hop: RemoteHop): RemoteTask {
    const request = (operation: 'get' | 'cancel', id: string, limits: HopLimits) => {
      const { version, tenant } = hop.endpoint;
      const requestId = this.nextRequestId();
      const params = { ...(tenant && { tenant }), id };
      const body = JSON.stringify({ jsonrpc: '2.0', id: requestId, method: taskMethods[version][operation], params });
      return this.postCall({ ...hop, ...limits }, requestId, { body, headers: jsonHeaders[version] });
    };
    return {
      get: (id, deadline) => request('get', id, { deadline, signals: hop.signals }),
      cancel: (id) => request('cancel', id, { deadline: new Deadline(cancelDeadlineMs, this.clock), signals: [] }),
    };
  }

  private async postCall(hop: RemoteHop, requestId: number, wire: WireCall): Promise<BridgeReply> {
    try {
      return await this.postOnce(hop, requestId, wire);
    } catch (error) {
      const isRefused = error instanceof RialtoError && error.data?.httpStatus === 401;
      if (!isRefused || !hop.headers.renew()) throw error;
      return this.postOnce(hop, requestId, wire);
    }
  }

  private async postOnce(hop: RemoteHop, requestId: number, wire: WireCall): Promise<BridgeReply> {
    const { endpoint, deadline, signals } = hop;
    const agentHeaders = await hop.headers.headersFor(endpoint.url, hop);
    if (deadline.leftMs === 0) throw new RialtoError('remote_timeout');
    const { status, headers, body } = await this.client.request({
      method: 'POST',
      url: endpoint.url,
      headers: { ...agentHeaders, ...wire.headers },
      body: wire.body,
      deadlineMs: deadline.leftMs,
      maxBytes: maxReplyBytes,
      purpose: 'agent',
      signal: signals,
    });
    try {
      return answerWithout(
        decodeBridgeReply(await parseLongJson(body.toString('utf8')), { status, requestId }),
        hop.headers.sent,
      );
    } catch (thrown) {
      const error = errorWithout(thrown, hop.headers.sent);
      throw status >= 200 && status <= 299 ? error : withHttpStatus(error, status, headers['retry-after']);
    }
  }

  /** Returns a number near the epoch milliseconds, never twice in this process (RE-17). */
  private nextRequestId(): number {
    this.lastRequestId = Math.max(this.lastRequestId + 1, this.clock.now());
    return this.lastRequestId;
  }
}

const jsonHeaders: Record<A2aVersion, Record<string, string>> = {
  '1.0': { 'content-type': 'application/json', accept: 'application/json', 'a2a-version': '1.0' },
  '0.3': { 'content-type': 'application/json', accept: 'application/json' },
};

/** Adds the HTTP status to `data` (RE-28); facts from a JSON-RPC body stay, and the code does not change. */
function withHttpStatus(error: unknown, httpStatus: number, retryAfter: string | undefined): RialtoError {
  const { code, message, data: { status: _, ...facts } = {} } = RialtoError.from(error);
  return new RialtoError(code, { message, data: { ...facts, httpStatus, ...(retryAfter && { retryAfter }) } });
}
