import { setTimeout as wait } from 'node:timers/promises';
import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { systemClock } from '../../kernel/clock.js';
import { UpstreamConnection } from './upstream-connection.js';

/** The other end: a server of the 2025 era, or one that never says anything. */
class Line implements Transport {
  onclose?: () => void;
  onmessage?: (message: JSONRPCMessage) => void;
  readonly heard: string[] = [];
  /** The server forgot the session: each call is refused as one of the refusals is called. */
  refusals?: (() => void)[];
  isClosed = false;

  constructor(private readonly isMute = false) {}

  start(): Promise<void> {
    return this.isMute ? new Promise(() => undefined) : Promise.resolve();
  }

  send(message: JSONRPCMessage): Promise<void> {
    const { id, method } = message as { id?: number; method: string };
    this.heard.push(method);
    if (this.refusals && method === 'any') {
      const gone = Object.assign(new Error('no such session'), { status: 404 });
      return new Promise((_, reject) => this.refusals!.push(() => reject(gone)));
    }
    const result = {
      protocolVersion: '2025-11-25',
      capabilities: { tools: {} },
      serverInfo: { name: 'x', version: '1' },
    };
    const error = { code: -32601, message: 'no' };
    if (id !== undefined && method !== 'never')
      queueMicrotask(() => this.say(method === 'server/discover' ? { id, error } : { id, result }));
    return Promise.resolve();
  }

  close(): Promise<void> {
    this.isClosed = true;
    this.onclose?.();
    return Promise.resolve();
  }

  say(message: object): void {
    this.onmessage?.({ jsonrpc: '2.0', ...message } as JSONRPCMessage);
  }
}

const times = { pauseMs: () => 150 };

describe('a line to an MCP server', () => {
  const lines: Line[] = [];
  const open: UpstreamConnection[] = [];
  let changes = 0;
  const connection = ({ mute = 0, autoReconnect = true } = {}): UpstreamConnection => {
    const transport = (): Promise<Transport> => {
      lines.push(new Line(lines.length < mute));
      return Promise.resolve(lines.at(-1)!);
    };
    const one = new UpstreamConnection({
      server: 'own',
      transport,
      autoReconnect,
      changed: () => changes++,
      times: { ...times, connectMs: mute > 0 ? 500 : 20_000 },
    });
    open.push(one);
    return one;
  };
  const ask = (one: UpstreamConnection, more: { timeoutMs?: number; signal?: AbortSignal } = {}, method = 'any') =>
    one.request(method, {}, { timeoutMs: 5_000, ...more });

  beforeEach(() => {
    lines.length = 0;
    changes = 0;
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((one) => one.close()));
  });

  it('is idle since the last call, whatever was looked for since then', async () => {
    const one = connection();
    await ask(one);
    const since = one.idleSince!;
    await one.offer().catch(() => undefined);
    expect(one.idleSince).toBe(since);
    await ask(one);
    expect(one.idleSince).toBeGreaterThan(since);
  });

  it('is opened by the first that needs it, for all that do', async () => {
    const one = connection();
    expect([one.status, one.connectedAt]).toEqual(['disconnected', undefined]);
    await Promise.all([ask(one), ask(one), ask(one)]);
    expect([lines.length, one.status, typeof one.connectedAt]).toEqual([1, 'ready', 'number']);
    expect(lines[0]!.heard.slice(0, 3)).toEqual(['server/discover', 'initialize', 'notifications/initialized']);
  });

  it('keeps nobody waiting for longer than an answer may take, or for one who left', async () => {
    const one = connection({ mute: 1 });
    await expect(ask(one, { timeoutMs: 30 })).rejects.toMatchObject({ code: 'remote_timeout' });
    const left = new AbortController();
    const waiting = ask(one, { signal: left.signal });
    left.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'canceled' });
    expect(one.status).toBe('connecting');
  });

  it('is given up when it does not come about, and tried again after a pause', async () => {
    const one = connection({ mute: 1 });
    await expect(ask(one)).rejects.toMatchObject({ code: 'remote_timeout' });
    expect(one.status).toBe('error');
    const refusal = { code: 'unavailable', data: { retryAfterSeconds: 1 } };
    await expect(ask(one)).rejects.toMatchObject(refusal);
    expect(lines).toHaveLength(1);
    await wait(times.pauseMs() + 10);
    await ask(one);
    expect([lines.length, one.status]).toEqual([2, 'ready']);
  });

  it.each([true, false])('comes back by itself when it broke, if it may: %s', async (autoReconnect) => {
    const one = connection({ autoReconnect });
    await ask(one);
    const under = expect(ask(one, {}, 'never')).rejects.toMatchObject({ code: 'remote_transport' });
    await wait(5);
    void lines[0]!.close();
    await under;
    expect(one.status).toBe('error');
    await wait(times.pauseMs() + 100);
    expect([lines.length, one.status]).toEqual(autoReconnect ? [2, 'ready'] : [1, 'error']);
    if (!autoReconnect) await expect(ask(one)).rejects.toMatchObject({ code: 'unavailable' });
  });

  it('comes back also when its timer is a little ahead of the clock', async () => {
    const one = connection();
    await ask(one);
    const now = systemClock.elapsed();
    const elapsed = jest.spyOn(systemClock, 'elapsed').mockImplementation(() => now);
    await lines[0]!.close();
    await wait(times.pauseMs() + 100);
    elapsed.mockRestore();
    expect([lines.length, one.status]).toEqual([2, 'ready']);
  });

  it('sends each call anew that a server refused, for it forgot the session, and loses none to the refusal of another', async () => {
    const one = connection();
    await ask(one);
    const [line] = lines;
    const refusals = (line!.refusals = []) as (() => void)[];
    const calls = [ask(one), ask(one), ask(one)];
    while (refusals.length < calls.length) await wait(1);
    refusals[0]!();
    await calls[0];
    expect([lines.length, line!.isClosed]).toEqual([2, false]);
    refusals[1]!();
    await calls[1];
    const last = calls[2]!.finally(() => expect(line!.isClosed).toBe(true));
    refusals[2]!();
    await last;
    expect(lines.map(({ heard }) => heard.filter((method) => method === 'any').length)).toEqual([4, 3]);
  });

  it('is looked over once for all that a server says of its changes', async () => {
    const one = connection();
    await ask(one);
    for (let count = 0; count < 50; count++) {
      lines[0]!.say({ method: 'notifications/tools/list_changed' });
      await wait(5);
    }
    await wait(900);
    expect(changes).toBe(1);
  });

  it('is no more once it was closed', async () => {
    const one = connection();
    await ask(one);
    const under = expect(ask(one, {}, 'never')).rejects.toMatchObject({ code: 'unavailable' });
    await wait(5);
    await one.close();
    await under;
    await expect(ask(one)).rejects.toMatchObject({ code: 'unavailable' });
    expect(lines).toHaveLength(1);
  });
});
