import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** What a model says next, as a stream of chunks where it is asked for one. */
export interface Speech {
  /** Pieces of text. */
  readonly text?: readonly string[];
  readonly calls?: readonly { readonly name: string; readonly args: unknown }[];
  readonly finish?: string;
  /** Tokens, as the server counts them. */
  readonly tokens?: number;
}

export interface ModelRequest {
  readonly headers: IncomingHttpHeaders;
  readonly url: string;
  readonly body: any;
}

/** One answer: a speech, or whatever the test writes. */
export type Reply = Speech | ((response: ServerResponse, request: ModelRequest) => unknown);

/** An OpenAI-compatible server on loopback that says what a test tells it to, in that order. */
export class ModelServer {
  readonly requests: ModelRequest[] = [];
  private replies: Reply[] = [];
  private readonly server = createServer((request, response) => {
    let text = '';
    request.on('data', (chunk: Buffer) => (text += chunk.toString()));
    request.on('end', () => {
      const seen = { headers: request.headers, url: request.url!, body: JSON.parse(text) as unknown };
      this.requests.push(seen);
      const reply = this.replies.shift() ?? { text: ['nothing more to say'] };
      if (typeof reply === 'function') void reply(response, seen);
      else speak(response, seen, reply);
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

  /** From now on it has been asked nothing, and says this. */
  script(...replies: Reply[]): void {
    this.requests.length = 0;
    this.replies = replies;
  }

  async close(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

/** An error, in the words of such servers. */
export const refuses =
  (status: number, message: string, headers: Record<string, string> = {}): Reply =>
  (response) =>
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(JSON.stringify({ error: { message } }));

function speak(response: ServerResponse, { body }: ModelRequest, { text = [], calls = [], ...more }: Speech): void {
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
  const say = (delta: object, reason: string | null = null): void =>
    void response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: reason }] })}\n\n`);
  for (const piece of text) say({ content: piece });
  for (const { function: called, ...call } of tool_calls) {
    const half = called.arguments.length >> 1;
    say({ tool_calls: [{ ...call, function: { ...called, arguments: called.arguments.slice(0, half) } }] });
    say({ tool_calls: [{ index: call.index, function: { arguments: called.arguments.slice(half) } }] });
  }
  say({}, finish);
  if (tokens !== undefined) response.write(`data: ${JSON.stringify({ choices: [], ...usage })}\n\n`);
  response.end('data: [DONE]\n\n');
}
