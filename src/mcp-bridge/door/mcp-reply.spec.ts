import { EventEmitter } from 'node:events';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { McpReply } from './mcp-reply.js';

describe('a slow answer (C34)', () => {
  beforeEach(() => jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate'] }));
  afterEach(() => jest.useRealTimers());

  class Response extends EventEmitter {
    status?: number;
    type?: string;
    text = '';
    destroyed = false;
    writableEnded = false;
    writableLength = 0;
    get headersSent(): boolean {
      return this.status !== undefined;
    }
    writeHead(status: number, headers: Record<string, string>): this {
      this.status = status;
      this.type = headers['Content-Type'];
      return this;
    }
    write(text: string): boolean {
      this.text += text;
      return true;
    }
    end(text = ''): this {
      this.text += text;
      this.writableEnded = true;
      return this;
    }
  }
  const answering = (accept?: string) => {
    const response = new Response();
    const reply = new McpReply({ headers: { accept } } as DoorRequest, response as unknown as DoorResponse);
    let finish!: (text: string) => void;
    const work = new Promise<string>((resolve) => (finish = resolve));
    const done = reply.whileWorking(() => work).then((text) => reply.end(text));
    const after = async (ms: number): Promise<string> => {
      jest.advanceTimersByTime(ms);
      await new Promise((resolve) => setImmediate(resolve));
      return response.text;
    };
    return { response, reply, after, end: (text: string) => (finish(text), done) };
  };
  const both = 'application/json, text/event-stream';

  it('sends headers and comments early to a client that accepts streams', async () => {
    const { response, after, end } = answering(both);
    expect([await after(4_900), response.status]).toEqual(['', undefined]);
    expect([await after(200), response.status, response.type]).toEqual([': keep-alive\n\n', 200, 'text/event-stream']);
    expect((await after(30_000)).match(/: keep-alive/g)).toHaveLength(3);
    await end('{"a":1}');
    expect(response.text.endsWith('event: message\ndata: {"a":1}\n\n')).toBe(true);
    const { text } = response;
    expect(await after(60_000)).toBe(text);
  });

  it('is plain JSON when it is ready early, and for a client that does not name streams', async () => {
    const soon = answering(both);
    await soon.after(4_000);
    await soon.end('{"a":1}');
    expect([soon.response.type, soon.response.text]).toEqual(['application/json', '{"a":1}']);
    for (const accept of ['application/json', '*/*', undefined]) {
      const late = answering(accept);
      expect(await late.after(60_000)).toBe('');
      await late.end('{"a":1}');
      expect([late.response.type, late.response.text]).toEqual(['application/json', '{"a":1}']);
    }
  });

  it('sends nothing to a client that disconnected', async () => {
    const { response, after } = answering(both);
    response.destroyed = true;
    expect([await after(60_000), response.status]).toEqual(['', undefined]);
  });
});
