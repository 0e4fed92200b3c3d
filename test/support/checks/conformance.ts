import * as sdk from '@a2a-js/sdk';
import { decodeErrorInfo, decodeStatus } from '@a2a-js/sdk/errors/grpc';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import { Client, credentials, Metadata, type ServiceError } from '@grpc/grpc-js';
import { startTestGateway, type TestGateway } from '../gateway/gateway.js';

/** The operations of v1.0, under their JSON-RPC names. */
export type Operation = keyof typeof rests;

/** A failed call, on any binding. */
export interface Failure {
  /** The `reason` of google.rpc.ErrorInfo. */
  readonly reason?: string;
  readonly domain?: string;
  /** The error code of the binding: of JSON-RPC, of HTTP (the status) or of gRPC. */
  readonly code: number;
  readonly message: string;
}

export interface Reply {
  readonly value?: any;
  readonly failure?: Failure;
  readonly contentType?: string;
}

/** A stream of StreamResponses in JSON. `failure` is set when the server refused the call at once. */
export interface Events extends Reply {
  next(): Promise<any>;
  rest(): Promise<any[]>;
  close(): void;
}

/** A client of one binding of v1.0. It knows only the specification and the agent card. */
export interface Wire {
  readonly binding: string;
  call(operation: Operation, params: object): Promise<Reply>;
  stream(operation: 'SendStreamingMessage' | 'SubscribeToTask', params: object): Promise<Events>;
  close(): void;
}

/** A gateway with a conformance agent, and clients that call it anonymously, as test kits do. */
export interface Given {
  readonly gateway: TestGateway;
  readonly card: any;
  readonly wires: Wire[];
  close(): Promise<void>;
}

export async function startConformance(profile: 'v1' | 'v03' | 'nocaps' | 'reqext'): Promise<Given> {
  const gateway = await startTestGateway({
    NODE_ENV: 'development',
    RIALTO_DEV_ANONYMOUS: 'true',
    RIALTO_A2A_PROFILE: '1.0.0',
    RIALTO_CONFORMANCE_AGENT: profile,
    ...(profile !== 'v03' && { GRPC_PORT: '0' }),
  });
  const card = (await (await fetch(`${gateway.url}/.well-known/agent-card.json`)).json()) as any;
  const wires = profile === 'v03' ? [] : wiresOf(card);
  const close = (): Promise<void> => {
    for (const wire of wires) wire.close();
    return gateway.close();
  };
  return { gateway, card, wires, close };
}

/** v1.0.0 section 5.4: the error codes of JSON-RPC, HTTP and gRPC, in the order of `bindings`. */
export const errors = {
  TASK_NOT_FOUND: [-32001, 404, 5],
  TASK_NOT_CANCELABLE: [-32002, 409, 9],
  PUSH_NOTIFICATION_NOT_SUPPORTED: [-32003, 400, 12],
  UNSUPPORTED_OPERATION: [-32004, 400, 12],
  CONTENT_TYPE_NOT_SUPPORTED: [-32005, 415, 3],
  EXTENSION_SUPPORT_REQUIRED: [-32008, 400, 9],
  VERSION_NOT_SUPPORTED: [-32009, 400, 12],
} as const;
export const bindings = ['JSONRPC', 'HTTP+JSON', 'GRPC'] as const;

/**
 * Builds a send as test kits write it: the message id names the expected behaviour, and a kind has one id for a whole
 * run.
 */
export function tck(kind: string, more: object = {}, parts: object[] = [{ text: 'TCK' }]) {
  return { message: { messageId: `tck-${kind}-1`, role: 'ROLE_USER', parts, ...more } };
}

interface Rest {
  readonly method: string;
  readonly path: string;
}

const configs = '/tasks/{taskId}/pushNotificationConfigs';
const rests = {
  SendMessage: { method: 'POST', path: '/message:send' },
  SendStreamingMessage: { method: 'POST', path: '/message:stream' },
  GetTask: { method: 'GET', path: '/tasks/{id}' },
  ListTasks: { method: 'GET', path: '/tasks' },
  CancelTask: { method: 'POST', path: '/tasks/{id}:cancel' },
  SubscribeToTask: { method: 'POST', path: '/tasks/{id}:subscribe' },
  CreateTaskPushNotificationConfig: { method: 'POST', path: configs },
  GetTaskPushNotificationConfig: { method: 'GET', path: `${configs}/{id}` },
  ListTaskPushNotificationConfigs: { method: 'GET', path: configs },
  DeleteTaskPushNotificationConfig: { method: 'DELETE', path: `${configs}/{id}` },
  GetExtendedAgentCard: { method: 'GET', path: '/extendedAgentCard' },
} as const satisfies Record<string, Rest>;

/** Headers of every request: the version, and the media type that test kits send. */
const usual = { 'A2A-Version': '1.0', 'Content-Type': 'application/json' };

/** Returns one client for each interface of a card. */
function wiresOf(card: any): Wire[] {
  const faces = card.supportedInterfaces as { url: string; protocolBinding: string }[];
  return faces.map(({ url, protocolBinding }) =>
    protocolBinding === 'GRPC' ? grpcWire(url) : protocolBinding === 'JSONRPC' ? rpcWire(url) : restWire(url),
  );
}

/** Creates a JSON-RPC client. Test kits post to the url with a slash at its end. */
function rpcWire(url: string): Wire {
  const post = (method: Operation, params: object) =>
    fetch(`${url}/`, {
      method: 'POST',
      headers: usual,
      body: JSON.stringify({ jsonrpc: '2.0', id: `tck-${method}`, method, params }),
    });
  const resultOf = (answer: any, method: Operation): Pick<Reply, 'value' | 'failure'> => {
    const { jsonrpc, id, result, error, ...others } = answer;
    if (jsonrpc !== '2.0' || id !== `tck-${method}` || Object.keys(others as object).length > 0)
      throw new Error(`not a JSON-RPC response: ${JSON.stringify(answer)}`);
    if (!error) return { value: result };
    if (Object.keys(error as object).some((name) => !['code', 'message', 'data'].includes(name)))
      throw new Error('the error has members other than code, message and data');
    return { failure: failureOf(error.code as number, error.message as string, error.data) };
  };
  const replyTo = (method: Operation) => async (response: Response) => ({
    ...resultOf(await response.json(), method),
    contentType: response.headers.get('content-type') ?? '',
  });
  return {
    binding: 'JSONRPC',
    call: async (operation, params) => replyTo(operation)(await post(operation, params)),
    stream: async (operation, params) =>
      eventsOf(
        await post(operation, params),
        replyTo(operation),
        (event) => resultOf(event, operation).value as unknown,
      ),
    close: () => undefined,
  };
}

function restWire(url: string): Wire {
  const send = (operation: Operation, params: object) => {
    const rest: Record<string, any> = { ...params };
    const { method, path } = rests[operation];
    const filled = path.replace(/\{(\w+)\}/g, (_all, name: string) => {
      const value = String(rest[name]);
      delete rest[name];
      return encodeURIComponent(value);
    });
    const isPost = method === 'POST';
    const query = isPost ? '' : new URLSearchParams(rest).toString();
    const body = isPost && Object.keys(rest).length > 0 ? JSON.stringify(rest) : undefined;
    return fetch(`${url}${filled}${query && `?${query}`}`, { method, headers: usual, body });
  };
  const replyOf = async (response: Response): Promise<Reply> => {
    const contentType = response.headers.get('content-type') ?? '';
    const text = await response.text();
    const body = text === '' ? {} : JSON.parse(text);
    if (response.ok) return { value: body, contentType };
    const { code, status, message, details } = body.error;
    if (code !== response.status || typeof status !== 'string') throw new Error(`not a google.rpc.Status: ${text}`);
    return { failure: failureOf(code as number, message as string, details), contentType };
  };
  return {
    binding: 'HTTP+JSON',
    call: async (operation, params) => replyOf(await send(operation, params)),
    stream: async (operation, params) => eventsOf(await send(operation, params), replyOf, (event) => event),
    close: () => undefined,
  };
}

function failureOf(code: number, message: string, details: any): Failure {
  const info = (details as any[] | undefined)?.find((one) => String(one['@type']).endsWith('/google.rpc.ErrorInfo'));
  return { code, message, ...(info && { reason: info.reason as string, domain: info.domain as string }) };
}

async function eventsOf(
  response: Response,
  replyOf: (response: Response) => Promise<Reply>,
  read: (data: any) => unknown,
): Promise<Events> {
  const contentType = response.headers.get('content-type') ?? '';
  const isStream = contentType.startsWith('text/event-stream');
  const refused = isStream ? {} : await replyOf(response);
  const reader = isStream ? framesIn(response, read) : undefined;
  const next = async (): Promise<unknown> => (await reader?.next())?.value;
  return { ...refused, contentType, next, rest: () => restOf(next), close: () => void reader?.return(undefined) };
}

async function restOf(next: () => Promise<any>): Promise<any[]> {
  const all: unknown[] = [];
  for (let event = await next(); event !== undefined; event = await next()) all.push(event);
  return all;
}

async function* framesIn(response: Response, read: (data: any) => unknown): AsyncGenerator<unknown, undefined> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    const frames = (text + decoder.decode(chunk, { stream: true })).split('\n\n');
    text = frames.pop()!;
    for (const frame of frames) {
      const data = /^data: ?(.*)$/m.exec(frame)?.[1];
      if (data !== undefined) yield read(JSON.parse(data));
    }
  }
  return undefined;
}

interface Messages {
  readonly ask: { fromJSON(value: any): any };
  readonly answer?: { toJSON(value: any): unknown };
}

const grpcs: Record<Operation, Messages> = {
  SendMessage: { ask: sdk.SendMessageRequest, answer: sdk.SendMessageResponse },
  SendStreamingMessage: { ask: sdk.SendMessageRequest, answer: sdk.StreamResponse },
  GetTask: { ask: sdk.GetTaskRequest, answer: sdk.Task },
  ListTasks: {
    ask: sdk.ListTasksRequest,
    // Protocol buffers do not distinguish an empty value from an absent one.
    answer: {
      toJSON: (list) => ({
        tasks: [],
        nextPageToken: '',
        totalSize: 0,
        ...(sdk.ListTasksResponse.toJSON(list as sdk.ListTasksResponse) as object),
      }),
    },
  },
  CancelTask: { ask: sdk.CancelTaskRequest, answer: sdk.Task },
  SubscribeToTask: { ask: sdk.SubscribeToTaskRequest, answer: sdk.StreamResponse },
  CreateTaskPushNotificationConfig: { ask: sdk.TaskPushNotificationConfig, answer: sdk.TaskPushNotificationConfig },
  GetTaskPushNotificationConfig: {
    ask: sdk.GetTaskPushNotificationConfigRequest,
    answer: sdk.TaskPushNotificationConfig,
  },
  ListTaskPushNotificationConfigs: {
    ask: sdk.ListTaskPushNotificationConfigsRequest,
    answer: sdk.ListTaskPushNotificationConfigsResponse,
  },
  DeleteTaskPushNotificationConfig: { ask: sdk.DeleteTaskPushNotificationConfigRequest },
  GetExtendedAgentCard: { ask: sdk.GetExtendedAgentCardRequest, answer: sdk.AgentCard },
};

function grpcWire(address: string): Wire {
  const client = new Client(address, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('a2a-version', '1.0');
  const pieces = (operation: Operation, params: object) => {
    const name = (operation[0]!.toLowerCase() + operation.slice(1)) as keyof typeof A2AService;
    const { path, requestSerialize, responseDeserialize } = A2AService[name];
    const { ask, answer } = grpcs[operation];
    const request: unknown = ask.fromJSON(params);
    const read = (value: unknown): unknown => (answer ? answer.toJSON(value) : {});
    return [path, requestSerialize as (value: unknown) => Buffer, responseDeserialize, request, read] as const;
  };
  return {
    binding: 'GRPC',
    call: (operation, params) => {
      const [path, encode, decode, request, read] = pieces(operation, params);
      return new Promise((resolve) => {
        client.makeUnaryRequest(path, encode, decode, request, metadata, (error, value) =>
          resolve(error ? { failure: grpcFailure(error) } : { value: read(value) }),
        );
      });
    },
    stream: async (operation, params) => {
      const [path, encode, decode, request, read] = pieces(operation, params);
      const call = client.makeServerStreamRequest(path, encode, decode, request, metadata);
      const events = call[Symbol.asyncIterator]();
      const ask = async (): Promise<any> => {
        const { done, value } = await events.next();
        return done ? undefined : read(value);
      };
      const failed = (error: ServiceError) => ({ failure: grpcFailure(error) });
      const first = await ask().then((event: unknown) => ({ event }), failed);
      const waiting = 'event' in first ? [first.event] : [];
      const next = async (): Promise<any> => (waiting.length > 0 ? waiting.shift() : ask());
      const refused = 'failure' in first ? first : {};
      return { ...refused, next, rest: () => restOf(next), close: () => call.cancel() };
    },
    close: () => client.close(),
  };
}

function grpcFailure({ code, details, metadata }: ServiceError): Failure {
  const [bin] = metadata.get('grpc-status-details-bin');
  const all = bin === undefined ? [] : decodeStatus(bin as Buffer).details;
  const info = all.find(({ typeUrl }) => typeUrl.endsWith('/google.rpc.ErrorInfo'));
  const { reason, domain } = info ? decodeErrorInfo(info.value) : {};
  return { code, message: details, ...(reason !== undefined && { reason, domain }) };
}
