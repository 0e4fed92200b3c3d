import type { Caller } from '../gateway/caller.js';

/** Publishes an agent; by default an echo agent. */
export async function publish(gateway: Caller, more: Record<string, unknown> = {}, token?: string): Promise<any> {
  const body = {
    name: 'echo',
    description: 'Repeats the message.',
    executor: { kind: 'echo' },
    a2a_enabled: true,
    ...more,
  };
  const answer = await gateway.call('POST', '/api/a2a/published', body, token);
  if (answer.status !== 201) throw new Error(`publishing the agent failed: ${JSON.stringify(answer.body)}`);
  return answer.body;
}

export interface RpcOptions {
  /** The name of the agent, or a whole path that begins with a slash. */
  readonly agent?: string;
  readonly token?: string | null;
  readonly headers?: Record<string, string>;
}

const pathOf = (agent: string): string => (agent.startsWith('/') ? agent : `/a2a/agents/${agent}`);

/** Sends one JSON-RPC request and returns the whole answer. */
export function rpcCall(gateway: Caller, method: string, params: unknown, options: RpcOptions = {}) {
  const { agent = 'echo', token, headers = {} } = options;
  return gateway.call('POST', pathOf(agent), { jsonrpc: '2.0', id: 1, method, params }, token, headers);
}

/** Sends a request and returns its `result`. Throws when the request fails. */
export async function rpc(gateway: Caller, method: string, params: unknown, options: RpcOptions = {}): Promise<any> {
  const { body, status } = await rpcCall(gateway, method, params, options);
  if (status !== 200 || body.error) throw new Error(`${method}: ${status} ${JSON.stringify(body)}`);
  return body.result;
}

/** Sends a request and returns its `error`. Throws when the request succeeds. */
export async function rpcError(
  gateway: Caller,
  method: string,
  params: unknown,
  options: RpcOptions = {},
): Promise<any> {
  const { body } = await rpcCall(gateway, method, params, options);
  if (!body.error) throw new Error(`${method} did not fail: ${JSON.stringify(body)}`);
  return body.error;
}

let messages = 0;

/** Builds a v1.0 message with one text part. */
export function userMessage(text: string, more: Record<string, unknown> = {}) {
  return {
    messageId: `m-${++messages}-${Math.random().toString(36).slice(2)}`,
    role: 'ROLE_USER',
    parts: [{ text }],
    ...more,
  };
}

export interface Frame {
  readonly id?: number;
  readonly event?: string;
  readonly data: any;
}

export interface OpenStream {
  readonly status: number;
  readonly headers: Headers;
  /** Reads the next frame; undefined at the end. Comments are skipped. */
  next(): Promise<Frame | undefined>;
  /** Reads all frames until the end. */
  rest(): Promise<Frame[]>;
  close(): void;
}

/** Opens a stream of server-sent events. */
export async function openStream(
  url: string,
  {
    token,
    body,
    method = 'POST',
    headers = {},
  }: { token?: string | null; body?: unknown; method?: string; headers?: Record<string, string> },
): Promise<OpenStream> {
  const ending = new AbortController();
  const response = await fetch(url, {
    method,
    signal: ending.signal,
    headers: {
      ...(token && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      accept: 'text/event-stream',
      ...headers,
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const frames = framesOf(response);
  const next = async () => (await frames.next()).value;
  return {
    status: response.status,
    headers: response.headers,
    next,
    rest: async () => {
      const all: Frame[] = [];
      for (let frame = await next(); frame; frame = await next()) all.push(frame);
      return all;
    },
    close: () => ending.abort(),
  };
}

/** Sends one JSON-RPC request and opens the stream of its answer. */
export function rpcStream(
  gateway: Caller,
  method: string,
  params: unknown,
  { agent = 'echo', token = gateway.token, headers }: RpcOptions = {},
): Promise<OpenStream> {
  return openStream(`${gateway.url}${pathOf(agent)}`, {
    token,
    headers,
    body: { jsonrpc: '2.0', id: 1, method, params },
  });
}

async function* framesOf(response: Response): AsyncGenerator<Frame, undefined> {
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
      const frame = frameOf(text.slice(0, end));
      text = text.slice(end + 2);
      if (frame) yield frame;
    }
  }
  return undefined;
}

function frameOf(block: string): Frame | undefined {
  const fields = new Map(
    block
      .split('\n')
      .filter((line) => !line.startsWith(':'))
      .map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trimStart()] as const),
  );
  const data = fields.get('data');
  if (data === undefined) return undefined;
  const [id, event] = [fields.get('id'), fields.get('event')];
  return { data: JSON.parse(data), ...(id !== undefined && { id: Number(id) }), ...(event !== undefined && { event }) };
}
