import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StreamableHTTPClientTransport, type JSONRPCMessage, type Transport } from '@modelcontextprotocol/client';
import { RialtoError } from '../../kernel/errors.js';
import { StdioTransport } from '../transports/stdio.transport.js';
import { UpstreamConnection } from './upstream-connection.js';
import type { ConnectionOptions } from './upstream-connection.types.js';
import type { UpstreamTransport } from '../upstream.types.js';

/** Program that records each start in a file, and handles requests before `initialize` in the given manner. */
const program = (manner: string, starts: string, startMs = 0): string => `
  require('node:fs').appendFileSync(${JSON.stringify(starts)}, 'start\\n');
  const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
  const manner = ${JSON.stringify(manner)};
  let isDeaf = false, isOpen = false, rest = '';
  const hear = (line) => {
    const { id, method, params } = JSON.parse(line);
    if (isDeaf || id === undefined) return;
    if (method === 'initialize') {
      const data = { supported: ['2026-07-28'] };
      if (manner === 'modern') return say({ id, error: { code: -32022, message: 'no', data } });
      isOpen = true;
      const serverInfo = { name: manner, version: '1' };
      return say({ id, result: { protocolVersion: params.protocolVersion, capabilities: {}, serverInfo } });
    }
    if (manner === 'broken') process.exit(1);
    if (manner === 'modern') {
      const supportedVersions = ['2026-07-28'];
      const hints = { ttlMs: 0, cacheScope: 'private' };
      const result = { resultType: 'complete', supportedVersions, capabilities: {}, ...hints };
      return say({ id, result: method === 'server/discover' ? result : { resultType: 'complete' } });
    }
    if (isOpen) return say({ id, result: {} });
    if (manner === 'exits') process.exit(0);
    if (manner === 'deaf') isDeaf = true;
    if (manner === 'refuses') say({ id, error: { code: -32601, message: 'no' } });
  };
  if (manner === 'gone') process.exit(3);
  setTimeout(() => process.stdin.on('data', (piece) => {
    const lines = (rest + piece).split('\\n');
    rest = lines.pop();
    lines.forEach(hear);
  }).on('end', () => process.exit(0)), ${startMs});`;

/** A program may take seconds to start on a busy machine: the timeouts are short only where no answer is expected. */
const patient = { connectMs: 60_000, probeMs: 30_000, hushMs: 30_000, pauseMs: () => 10 };
const hasty = { ...patient, probeMs: 400 };

describe('era of an MCP server (C28, E1)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-eras-'));
  const open: UpstreamConnection[] = [];
  afterEach(() => Promise.all(open.splice(0).map((one) => one.close())));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));
  let count = 0;

  const connect = (
    transportKind: UpstreamTransport,
    transport: () => Promise<Transport>,
    more: Partial<ConnectionOptions> = {},
  ): UpstreamConnection => {
    const options = { server: 's', autoReconnect: true, changed: () => undefined, times: patient, ...more };
    open.push(new UpstreamConnection({ ...options, transportKind, transport }));
    return open.at(-1)!;
  };
  const start = (manner: string, startMs = 0, more: Partial<ConnectionOptions> = {}) => {
    const starts = join(folder, String(count++));
    appendFileSync(starts, '');
    const guard = { wordsFor: async () => [], handOver: () => undefined };
    const command = {
      command: process.execPath,
      args: ['-e', program(manner, starts, startMs)],
      env: {},
      cache: folder,
    };
    const transport = (): Promise<Transport> => Promise.resolve(new StdioTransport(command, guard, () => undefined));
    const one = connect('stdio', transport, more);
    return { one, starts: () => readFileSync(starts, 'utf8').split('\n').length - 1 };
  };
  const offered = async (one: UpstreamConnection): Promise<unknown[]> => {
    const { serverInfo, wantsInitialize } = await one.offer();
    return [serverInfo.name, one.era, wantsInitialize];
  };

  it.each<[string, string, number, unknown[], ConnectionOptions['times']?]>([
    ['exits at the first request is started again', 'exits', 2, ['exits', 'legacy', true]],
    ['ignores the first request continues', 'ignores', 1, ['ignores', 'legacy', true], hasty],
    [
      'stops reading after the first request is started a second time',
      'deaf',
      2,
      ['deaf', 'legacy', true],
      { ...hasty, hushMs: 1_500 },
    ],
    ['refuses the first request continues', 'refuses', 1, ['refuses', 'legacy', undefined]],
    ['speaks the later revision is used with it', 'modern', 1, [undefined, 'modern', undefined]],
  ])('a program that %s', async (_, manner, count, found, times = patient) => {
    const { one, starts } = start(manner, 0, { times });
    expect(await offered(one)).toEqual(found);
    expect(starts()).toBe(count);
  });

  it('starts a slow program only once', async () => {
    const { one, starts } = start('refuses', 1_000, { times: hasty });
    expect([await offered(one), starts()]).toEqual([['refuses', 'legacy', undefined], 1]);
    const modern = start('modern', 1_000, { times: hasty });
    expect((await offered(modern.one))[1]).toBe('modern');
    expect(modern.starts()).toBeLessThanOrEqual(2);
  });

  it('remembers the era, and notices a program that speaks another revision now', async () => {
    const { one, starts } = start('exits', 0, { wantsInitialize: true });
    expect([await offered(one), starts()]).toEqual([['exits', 'legacy', true], 1]);
    await one.release();
    expect([await offered(one), starts()]).toEqual([['exits', 'legacy', true], 2]);
    const { one: modern } = start('modern', 0, { wantsInitialize: true });
    expect(await offered(modern)).toEqual([undefined, 'modern', undefined]);
  });

  it('starts a program that always exits at most twice, and does not retry a missing program', async () => {
    const { one, starts } = start('gone');
    await expect(one.offer()).rejects.toMatchObject({ code: 'remote_transport' });
    expect(starts()).toBeLessThanOrEqual(2);
    let tries = 0;
    const missing = connect('stdio', () => {
      tries++;
      return Promise.reject(new RialtoError('remote_transport', { message: 'there is no program "x"' }));
    });
    await expect(missing.offer()).rejects.toMatchObject({ message: 'there is no program "x"' });
    expect(tries).toBe(1);
  });

  it('is not tested when the registration sets it', async () => {
    const { one, starts } = start('exits', 0, { era: 'legacy' });
    expect([await offered(one), starts()]).toEqual([['exits', 'legacy', undefined], 1]);
    const { one: modern } = start('refuses', 0, { era: 'modern' });
    await expect(modern.offer()).rejects.toThrow();
  });

  /** Socket to a server that closes it at the first request, or does not answer. */
  class Socket implements Transport {
    onclose?: () => void;
    onmessage?: (message: JSONRPCMessage) => void;
    private isOpen = false;

    constructor(private readonly manner: 'closes' | 'ignores') {}

    start = (): Promise<void> => Promise.resolve();
    close = (): Promise<void> => Promise.resolve(this.onclose?.());
    send(message: JSONRPCMessage): Promise<void> {
      const { id, method } = message as { id?: number; method: string };
      if (method === 'initialize') this.isOpen = true;
      else if (id !== undefined && !this.isOpen) {
        if (this.manner === 'closes') setImmediate(() => void this.close());
        return Promise.resolve();
      }
      const serverInfo = { name: this.manner, version: '1' };
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo };
      if (id !== undefined) setImmediate(() => this.onmessage?.({ jsonrpc: '2.0', id, result }));
      return Promise.resolve();
    }
  }

  it.each(['closes', 'ignores'] as const)(
    'opens a second socket when the server %s the first request',
    async (manner) => {
      let sockets = 0;
      const one = connect(
        'websocket',
        () => {
          sockets++;
          return Promise.resolve(new Socket(manner));
        },
        { times: hasty },
      );
      expect(await offered(one)).toEqual([manner, 'legacy', true]);
      expect(sockets).toBe(2);
    },
  );

  it('does not test the HTTP+SSE transport of 2024 for a later revision', async () => {
    let sockets = 0;
    const one = connect('sse', () => {
      sockets++;
      return Promise.resolve(new Socket('closes'));
    });
    expect(await offered(one)).toEqual(['closes', 'legacy', undefined]);
    expect(sockets).toBe(1);
  });

  it.each<[string, (method: string) => Response | Promise<Response>]>([
    ['fails', () => new Response('Traceback', { status: 500 })],
    ['answers with a page', () => new Response('<html>', { headers: { 'content-type': 'text/html' } })],
    ['does not answer', () => new Promise(() => undefined)],
  ])('sends initialize to an HTTP server that %s at the first request', async (_, before) => {
    const methods: string[] = [];
    const answer = async (_input: unknown, init?: RequestInit): Promise<Response> => {
      if (init?.method !== 'POST') return new Response(null, { status: 405 });
      const { id, method } = JSON.parse(init.body as string) as { id?: number; method: string };
      methods.push(method);
      if (id === undefined) return new Response(null, { status: 202 });
      if (method === 'server/discover') return before(method);
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'h', version: '1' } };
      return Response.json({ jsonrpc: '2.0', id, result });
    };
    const one = connect(
      'streamable-http',
      () => Promise.resolve(new StreamableHTTPClientTransport(new URL('http://x'), { fetch: answer })),
      { times: hasty },
    );
    expect((await offered(one))[1]).toBe('legacy');
    expect(methods.slice(0, 2)).toEqual(['server/discover', 'initialize']);
  });

  it('sends one request to an HTTP server that wants a credential or cannot be reached', async () => {
    let requests = 0;
    const one = connect('streamable-http', () =>
      Promise.resolve(
        new StreamableHTTPClientTransport(new URL('http://x'), {
          fetch: () => Promise.resolve(new Response('who?', { status: ++requests && 401 })),
        }),
      ),
    );
    await expect(one.offer()).rejects.toMatchObject({ data: { upstreamStatus: 401 } });
    expect(requests).toBe(1);
    const unreachable = new RialtoError('remote_transport');
    const away = connect('streamable-http', () =>
      Promise.resolve(
        new StreamableHTTPClientTransport(new URL('http://x'), {
          fetch: () => (requests++, Promise.reject(unreachable)),
        }),
      ),
    );
    await expect(away.offer()).rejects.toMatchObject({ code: 'remote_transport' });
    expect(requests).toBe(2);
  });
});
