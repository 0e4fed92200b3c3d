import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The next answer of a model; a stream of chunks when the request asks for a stream. */
export interface Speech {
  /** Pieces of the text. */
  readonly text?: readonly string[];
  readonly calls?: readonly { readonly name: string; readonly args: unknown }[];
  readonly finish?: string;
  /** Number of tokens that the server reports. */
  readonly tokens?: number;
}

export interface ModelRequest {
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  readonly body: any;
}

/** One answer: a speech, or a function that writes the response. */
export type Reply = Speech | ((response: ServerResponse, request: ModelRequest) => unknown);

/** An OpenAI-compatible server on loopback that gives scripted answers in order. */
export class ModelServer {
  readonly requests: ModelRequest[] = [];
  private replies: Reply[] = [];
  private readonly server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const seen = { headers: request.headers, url: request.url!, body: JSON.parse(text) as unknown };
      this.requests.push(seen);
      const reply = this.replies.shift() ?? { text: ['no scripted reply is left'] };
      if (typeof reply === 'function') void reply(response, seen);
      else sendSpeech(response, seen, reply);
    });
  });

  static async start(): Promise<ModelServer> {
    const one = new ModelServer();
    await new Promise<void>((resolve) => one.server.listen(0, '127.0.0.1', resolve));
    return one;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/v1`;
  }

  /** Clears the received requests and sets the next answers. */
  script(...replies: Reply[]): void {
    this.requests.length = 0;
    this.replies = replies;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** Builds an error answer in the format of such servers. */
export const refuses =
  (status: number, message: string, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify({ error: { message } }));

function sendSpeech(
  response: ServerResponse,
  { body }: ModelRequest,
  { text = [], calls = [], ...more }: Speech,
): void {
  const { finish = calls.length > 0 ? 'tool_calls' : 'stop', tokens } = more;
  const usage = tokens === undefined ? {} : { usage: { completion_tokens: tokens } };
  const tool_calls = calls.map(({ name, args }, index) => ({
    index,
    id: `call-${index}`,
    type: 'function',
    function: { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) },
  }));
  if (body.stream !== true) {
    const message = { role: 'assistant', content: text.join(''), ...(calls.length > 0 && { tool_calls }) };
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ choices: [{ index: 0, message, finish_reason: finish }], ...usage }));
    return;
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const sendDelta = (delta: object, reason: string | null = null): void =>
    void response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
  for (const piece of text) sendDelta({ content: piece });
  for (const { function: called, ...call } of tool_calls) {
    const half = called.arguments.length >> 1;
    sendDelta({ tool_calls: [{ ...call, function: { ...called, arguments: called.arguments.slice(0, half) } }] });
    sendDelta({ tool_calls: [{ index: call.index, function: { arguments: called.arguments.slice(half) } }] });
  }
  sendDelta({}, finish);
  if (tokens !== undefined) response.write(`data: ${JSON.stringify({ choices: [], ...usage })}\n\n`);
  response.end('data: [DONE]\n\n');
}
