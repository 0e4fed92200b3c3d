import type { Client } from '@modelcontextprotocol/client';
import { HealthCheck } from './health-check.js';

describe('AE-58 AE-67 HealthCheck', () => {
  const sent: [method: string, timeout: number][] = [];
  let answer: () => Promise<unknown>;
  let isBusy = false;
  const silences: unknown[] = [];
  const client = (version: string) =>
    ({
      getNegotiatedProtocolVersion: () => version,
      request: ({ method }: { method: string }, _schema: unknown, { timeout }: { timeout: number }) => {
        sent.push([method, timeout]);
        return answer();
      },
    }) as unknown as Client;
  const healthCheck = new HealthCheck({
    server: 'own',
    isBusy: () => isBusy,
    onSilence: (_client, thrown) => silences.push(thrown),
  });

  beforeEach(() => {
    jest.useFakeTimers();
    sent.length = 0;
    silences.length = 0;
    isBusy = false;
    answer = () => Promise.resolve({});
  });
  afterEach(() => {
    healthCheck.closed();
    jest.useRealTimers();
  });

  it('pings one second after the opening and then every 30 s, with a timeout of 5 s', async () => {
    healthCheck.connectionOpened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(61_500);
    expect(sent).toEqual([
      ['ping', 5_000],
      ['ping', 5_000],
      ['ping', 5_000],
    ]);
    expect([typeof healthCheck.lastMs, silences]).toEqual(['number', []]);
  });

  it('sends server/discover to a server of the 2026-07-28 revision, which has no ping', async () => {
    healthCheck.connectionOpened(client('2026-07-28'));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(sent).toEqual([['server/discover', 5_000]]);
  });

  it('accepts a protocol error as an answer', async () => {
    answer = () => Promise.reject(Object.assign(new Error('no such method'), { code: -32601 }));
    healthCheck.connectionOpened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(31_000);
    expect([sent.length, silences]).toEqual([2, []]);
  });

  it('reports a missing answer once, and not while a call is running', async () => {
    const timeout = Object.assign(new Error('too slow'), { code: 'REQUEST_TIMEOUT' });
    answer = () => Promise.reject(timeout);
    isBusy = true;
    healthCheck.connectionOpened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(31_000);
    expect(sent).toEqual([]);
    isBusy = false;
    await jest.advanceTimersByTimeAsync(90_000);
    expect([sent.length, silences]).toEqual([1, [timeout]]);
  });

  it('reports nothing about a closed connection', async () => {
    answer = () => new Promise((_, fail) => setTimeout(() => fail(new Error('late')), 3_000));
    healthCheck.connectionOpened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(1_500);
    healthCheck.closed();
    await jest.advanceTimersByTimeAsync(90_000);
    expect([sent.length, silences]).toEqual([1, []]);
  });
});
