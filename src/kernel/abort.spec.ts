import { getEventListeners } from 'node:events';
import { timeoutSignal, raceSignal } from './abort.js';

const after = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

describe('timeoutSignal', () => {
  it('aborts after its time or with the first of its signals, even if that signal has already aborted', async () => {
    const short = timeoutSignal(1, []);
    await after(20);
    expect(short.signal.aborted).toBe(true);
    const [caller, other] = [new AbortController(), new AbortController()];
    const long = timeoutSignal(60_000, [other.signal, undefined, caller.signal]);
    expect(long.signal.aborted).toBe(false);
    caller.abort();
    expect([long.signal.aborted, timeoutSignal(60_000, [caller.signal]).signal.aborted]).toEqual([true, true]);
    long.end();
  });

  it('does not abort after `end`', async () => {
    const caller = new AbortController();
    const { signal, end } = timeoutSignal(1, [caller.signal]);
    end();
    caller.abort();
    await after(20);
    expect(signal.aborted).toBe(false);
  });
});

describe('raceSignal', () => {
  it('listens to the signal only while the work runs', async () => {
    const { signal } = new AbortController();
    const late = (): Error => new Error('late');
    expect(await raceSignal(signal, Promise.resolve(1), late)).toBe(1);
    await expect(raceSignal(signal, Promise.reject(new Error('broken')), late)).rejects.toThrow('broken');
    await after(0);
    expect(getEventListeners(signal, 'abort')).toEqual([]);
  });
});
