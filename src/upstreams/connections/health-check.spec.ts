import type { Client } from '@modelcontextprotocol/client';
import { HealthCheck } from './health-check.js';

describe('AE-58 AE-67 the pulse of a line', () => {
  const asked: [method: string, timeout: number][] = [];
  let answer: () => Promise<unknown>;
  let isBusy = false;
  const silences: unknown[] = [];
  const client = (version: string) =>
    ({
      getNegotiatedProtocolVersion: () => version,
      request: ({ method }: { method: string }, _schema: unknown, { timeout }: { timeout: number }) => {
        asked.push([method, timeout]);
        return answer();
      },
    }) as unknown as Client;
  const pulse = new HealthCheck({
    server: 'own',
    isBusy: () => isBusy,
    onSilence: (_client, thrown) => silences.push(thrown),
  });

  beforeEach(() => {
    jest.useFakeTimers();
    asked.length = 0;
    silences.length = 0;
    isBusy = false;
    answer = () => Promise.resolve({});
  });
  afterEach(() => {
    pulse.closed();
    jest.useRealTimers();
  });

  it('asks a second after the opening, and each half minute, for 5 s each time', async () => {
    pulse.opened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(61_500);
    expect(asked).toEqual([
      ['ping', 5_000],
      ['ping', 5_000],
      ['ping', 5_000],
    ]);
    expect([typeof pulse.lastMs, silences]).toEqual(['number', []]);
  });

  it('asks a server of the 2026-07-28 revision, which has no ping, what it is', async () => {
    pulse.opened(client('2026-07-28'));
    await jest.advanceTimersByTimeAsync(1_000);
    expect(asked).toEqual([['server/discover', 5_000]]);
  });

  it('takes an error of the protocol for an answer', async () => {
    answer = () => Promise.reject(Object.assign(new Error('no such method'), { code: -32601 }));
    pulse.opened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(31_000);
    expect([asked.length, silences]).toEqual([2, []]);
  });

  it('tells of a silence once, and not while somebody waits for an answer', async () => {
    const timeout = Object.assign(new Error('too slow'), { code: 'REQUEST_TIMEOUT' });
    answer = () => Promise.reject(timeout);
    isBusy = true;
    pulse.opened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(31_000);
    expect(asked).toEqual([]);
    isBusy = false;
    await jest.advanceTimersByTimeAsync(90_000);
    expect([asked.length, silences]).toEqual([1, [timeout]]);
  });

  it('says nothing of a line that is closed', async () => {
    answer = () => new Promise((_, fail) => setTimeout(() => fail(new Error('late')), 3_000));
    pulse.opened(client('2025-11-25'));
    await jest.advanceTimersByTimeAsync(1_500);
    pulse.closed();
    await jest.advanceTimersByTimeAsync(90_000);
    expect([asked.length, silences]).toEqual([1, []]);
  });
});
