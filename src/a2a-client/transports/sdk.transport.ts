import {
  AgentCard,
  CancelTaskRequest,
  GetTaskRequest,
  ListTasksRequest,
  SendMessageRequest,
  SubscribeToTaskRequest,
  type StreamResponse as SdkEvent,
} from '@a2a-js/sdk';
import { JsonRpcTransportFactory, RestTransportFactory, type RequestOptions, type Transport } from '@a2a-js/sdk/client';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Message, StreamResponse, Task } from '../../protocol/a2a/model.js';
import { asTexts } from '../../protocol/exact-integers.js';
import { jsonRpcCodes } from '../../protocol/jsonrpc.js';
import type { OutboundPolicy, SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { Endpoint } from './endpoint-choice.js';
import type { RemoteHop } from './remote-hop.js';
import { answerWithout, errorWithout } from './sent-credentials.js';
import type { SendReply } from './send-reply.js';
import { checkedFetch, type WireRules } from './checked-fetch.js';
import { GrpcChannels } from './grpc-channels.js';
import { eventOf, replyOf, taskOf, taskWithId } from './sdk-model.js';
import { restoringUnknownParts } from './unknown-parts.js';
import { notA2a, refused } from './wire-error.js';

/** A message with its configuration, as v1.0 defines them (section 3.2.1). */
export interface SendParams {
  message: Message;
  configuration?: { acceptedOutputModes?: string[]; historyLength?: number; returnImmediately?: boolean };
  metadata?: JsonObject;
}

export interface TaskPage {
  tasks: Task[];
  nextPageToken: string;
}

/** Limits of one call; each has a default. */
export interface SdkLimits {
  readonly maxReplyBytes?: number;
  readonly maxStreamBytes?: number;
  readonly maxEventBytes?: number;
  readonly maxEvents?: number;
  readonly idleMs?: number;
}

/** A hop on the SDK's transports. `amend` adds to the params of a v0.3 JSON-RPC request. */
export interface SdkHop extends RemoteHop {
  readonly amend?: WireRules['amend'];
}

const mebibyte = 1_048_576;
const defaults: Required<SdkLimits> = {
  maxReplyBytes: 4 * mebibyte,
  maxStreamBytes: 64 * mebibyte,
  maxEventBytes: mebibyte,
  maxEvents: 100_000,
  idleMs: 120_000,
};

/**
 * Runs the official client transports (JSON-RPC, HTTP+JSON, gRPC; v1.0 and v0.3) on the gateway's own network layer;
 * takes and returns values that do not depend on the version. Errors: `remote_timeout`, `remote_transport`
 * (`data.httpStatus`), `remote_invalid_response`, `remote_error` (`data.remoteCode`, `data.remoteMessage`),
 * `url_not_allowed`, `canceled`. This class does not retry.
 */
export class SdkTransport {
  private readonly limits: Required<SdkLimits>;
  private readonly channels: GrpcChannels;

  constructor(
    private readonly client: SafeFetch,
    policy: OutboundPolicy,
    limits: SdkLimits = {},
  ) {
    this.limits = { ...defaults, ...limits };
    this.channels = new GrpcChannels(policy);
  }

  /** @param pushUrl URL to which the agent may push updates of its task. */
  send(hop: SdkHop, params: SendParams, pushUrl?: string): Promise<SendReply> {
    const request = sendRequest(hop, params, pushUrl);
    return this.exchange(withWholeParts(hop, params), true, async (transport, options) =>
      replyOf(await transport.sendMessage(request, options)),
    );
  }

  stream(hop: SdkHop, params: SendParams, pushUrl?: string): AsyncGenerator<StreamResponse, void> {
    const request = sendRequest(hop, params, pushUrl);
    return this.followStream(withWholeParts(hop, params), (transport, options) =>
      transport.sendMessageStream(request, options),
    );
  }

  getTask(hop: SdkHop, id: string, historyLength?: number): Promise<Task> {
    const request = GetTaskRequest.fromJSON({ ...tenantOf(hop), id, historyLength });
    return this.exchange(hop, true, async (transport, options) =>
      taskWithId(await transport.getTask(request, options), id),
    );
  }

  cancelTask(hop: SdkHop, id: string): Promise<Task> {
    const request = CancelTaskRequest.fromJSON({ ...tenantOf(hop), id });
    return this.exchange(hop, true, async (transport, options) =>
      taskWithId(await transport.cancelTask(request, options), id),
    );
  }

  /** Throws `remote_error` -32601 when the version has no such operation. */
  listTasks(hop: SdkHop, query: JsonObject): Promise<TaskPage> {
    const request = ListTasksRequest.fromJSON({ ...tenantOf(hop), ...query });
    return this.exchange(hop, false, async (transport, options) => {
      const { tasks, nextPageToken } = await transport.listTasks(request, options);
      return { tasks: tasks.map(taskOf), nextPageToken };
    });
  }

  subscribe(hop: SdkHop, id: string): AsyncGenerator<StreamResponse, void> {
    const request = SubscribeToTaskRequest.fromJSON({ ...tenantOf(hop), id });
    return this.followStream(hop, (transport, options) => transport.resubscribeTask(request, options));
  }

  close(): void {
    this.channels.close();
  }

  private async exchange<T extends object>(hop: SdkHop, expectsReply: boolean, work: Work<Promise<T>>): Promise<T> {
    const callSignal = new CallSignal(hop);
    try {
      const answer = await work(
        ...(await this.openTransport(hop, callSignal, this.limits.maxReplyBytes + mebibyte, expectsReply)),
      );
      return answerWithout(answer, hop.headers.sent);
    } catch (error) {
      throw errorWithout(
        callSignal.meaning(error, (thrown) => this.meaning(hop, thrown)),
        hop.headers.sent,
      );
    } finally {
      callSignal.dispose();
    }
  }

  private async *followStream(hop: SdkHop, work: Work<AsyncIterable<SdkEvent>>): AsyncGenerator<StreamResponse, void> {
    const callSignal = new CallSignal(hop);
    try {
      const events = work(...(await this.openTransport(hop, callSignal, this.limits.maxStreamBytes, true)));
      for await (const event of events) yield answerWithout(eventOf(event), hop.headers.sent);
    } catch (error) {
      throw errorWithout(
        callSignal.meaning(error, (thrown) => this.meaning(hop, thrown)),
        hop.headers.sent,
      );
    } finally {
      callSignal.dispose();
    }
  }

  private meaning({ endpoint }: SdkHop, error: unknown): RialtoError {
    return endpoint.binding === 'GRPC' ? this.channels.meaning(endpoint, error) : sdkMeaning(error);
  }

  private async openTransport(
    hop: SdkHop,
    callSignal: CallSignal,
    maxBytes: number,
    expectsReply: boolean,
  ): Promise<[Transport, RequestOptions]> {
    const { endpoint, deadline } = hop;
    if (deadline.leftMs === 0) throw new RialtoError('remote_timeout');
    const version: Record<string, string> = endpoint.version === '1.0' ? { 'a2a-version': '1.0' } : {};
    const options = { signal: callSignal.signal, serviceParameters: version };
    if (endpoint.binding === 'GRPC') {
      Object.assign(options.serviceParameters, await hop.headers.headersFor(endpoint.url, hop));
      return [await this.channels.transport(endpoint), options];
    }
    const headers = (url: URL) => hop.headers.headersFor(url.href, hop);
    const purpose = expectsReply ? ('agent' as const) : undefined;
    const plain = this.client.asFetch({
      deadlineMs: deadline.leftMs,
      maxBytes,
      headers,
      signal: callSignal.signal,
      purpose,
    });
    const fetchImpl = checkedFetch(plain, { ...this.limits, endpoint, expectsReply, amend: hop.amend });
    return [await httpTransport(endpoint, fetchImpl), options];
  }
}

function withWholeParts(hop: SdkHop, { message }: SendParams): SdkHop {
  const restore = restoringUnknownParts(message);
  if (!restore) return hop;
  const amend = (params: JsonObject): void => {
    hop.amend?.(params);
    restore(params);
  };
  return { ...hop, amend };
}

type Work<Result> = (transport: Transport, options: RequestOptions) => Result;

/** The abort signal and the timer of one call; also decides what a failure of the call means. */
class CallSignal {
  private readonly stop = new AbortController();
  private readonly timer: NodeJS.Timeout;
  private isLate = false;
  private readonly onAbort = (): void => this.stop.abort();

  constructor(private readonly hop: SdkHop) {
    this.timer = setTimeout(() => {
      this.isLate = true;
      this.stop.abort();
    }, hop.deadline.leftMs);
    for (const signal of hop.signals) {
      if (signal.aborted) this.stop.abort();
      else signal.addEventListener('abort', this.onAbort, { once: true });
    }
  }

  get signal(): AbortSignal {
    return this.stop.signal;
  }

  meaning(error: unknown, otherwise: (error: unknown) => RialtoError): RialtoError {
    if (this.hop.signals.some(({ aborted }) => aborted)) return new RialtoError('canceled', { cause: error });
    if (this.isLate) return new RialtoError('remote_timeout', { cause: error });
    return error instanceof RialtoError ? error : otherwise(error);
  }

  /** Also ends a stream that its reader left. */
  dispose(): void {
    clearTimeout(this.timer);
    for (const signal of this.hop.signals) signal.removeEventListener('abort', this.onAbort);
    this.stop.abort();
  }
}

/**
 * Converts an error of the SDK. The checked fetch has validated the answer already, so the error comes from the SDK's
 * reader, or the operation does not exist.
 */
function sdkMeaning(error: unknown): RialtoError {
  const { cause, envelopeCode, message } = (error ?? {}) as {
    cause?: unknown;
    envelopeCode?: unknown;
    message?: string;
  };
  if (cause instanceof RialtoError) return cause;
  if (envelopeCode === jsonRpcCodes.methodNotFound) return refused({ code: envelopeCode, message: message ?? '' });
  return notA2a('it cannot be read', error);
}

function sendRequest(hop: SdkHop, { configuration, ...params }: SendParams, pushUrl?: string): SendMessageRequest {
  const push = pushUrl === undefined ? {} : { taskPushNotificationConfig: { url: pushUrl } };
  const configured = configuration || pushUrl !== undefined ? { configuration: { ...configuration, ...push } } : {};
  const request = { ...tenantOf(hop), ...params, ...configured };
  return SendMessageRequest.fromJSON(hop.endpoint.binding === 'GRPC' ? asTexts(request) : request);
}

function tenantOf({ endpoint }: SdkHop): { tenant?: string } {
  return endpoint.tenant ? { tenant: endpoint.tenant } : {};
}

function httpTransport({ url, binding, version }: Endpoint, fetchImpl: typeof globalThis.fetch): Promise<Transport> {
  const card = AgentCard.fromJSON({
    supportedInterfaces: [{ url, protocolBinding: binding, protocolVersion: version }],
  });
  const options = { fetchImpl, legacyCompat: { enabled: true } };
  const factory = binding === 'JSONRPC' ? new JsonRpcTransportFactory(options) : new RestTransportFactory(options);
  return factory.create(url, card);
}
