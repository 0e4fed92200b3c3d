import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { SuspendedCalls, type HeldRequest } from './suspended-calls.js';

describe('SuspendedCalls', () => {
  const peer = { key: 'a', era: 'modern', capabilities: {}, tell: () => undefined } as unknown as Peer;
  const request = {
    ctx: { org: { id: 'o' }, principal: { kind: 'User', id: 'ann' } },
    peer,
    method: 'tools/call',
    params: {},
  } as unknown as HeldRequest;
  const cursors = {
    encode: (_: string, words: string[]) => words.join(' '),
    decode: (_: string, state: string) => state.split(' '),
  };
  const make = () =>
    new SuspendedCalls(
      { findOpen: () => Promise.resolve([]) } as never,
      { id: 7 } as never,
      cursors as never,
      {} as never,
      {} as never,
    );
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  /** Server that asks a question and ends when `done` resolves, independent of the answer. */
  const asking = (result: JsonObject, done: Promise<void>) => async (asked: Peer) => {
    void asked.ask('elicitation/create', {}).catch(() => undefined);
    await done;
    return result;
  };
  const answered = (state: unknown) => ({
    ...request,
    peer: { ...peer, answers: { requestState: state as string, inputResponses: {} } },
  });

  it('forgets a call when its outcome was read', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const calls = make();
    await calls.beginCall(request, () => Promise.resolve({ content: [] }));
    await expect(calls.beginCall(request, () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    await turn();
    expect(timers.mock.calls.filter(([, ms]) => ms === 300_000)).toEqual([]);
    timers.mockRestore();
  });

  it('keeps the newest twenty outcomes of each caller that is away', async () => {
    const calls = make();
    let finish: () => void = () => undefined;
    const done = new Promise<void>((resolve) => (finish = resolve));
    const begun = Array.from({ length: 21 }, (_, one) => calls.beginCall(request, asking({ one }, done)));
    const states = (await Promise.all(begun)).map(({ requestState }) => requestState);
    finish();
    for (let turns = 0; turns < 5; turns++) await turn();
    await expect(calls.resumeCall(answered(states[0]))).rejects.toMatchObject({ code: 'unavailable' });
    expect(await calls.resumeCall(answered(states[1]))).toEqual({ one: 1 });
    expect(await calls.resumeCall(answered(states[20]))).toEqual({ one: 20 });
  });

  it('passes notifications between two rounds on with the next round, with its progress token', async () => {
    const calls = make();
    const received: unknown[] = [];
    const peerWith = (progressToken: string) =>
      ({ ...peer, progressToken, tell: (_: string, params: JsonObject) => received.push(params) }) as unknown as Peer;
    let server: Peer | undefined;
    let finish: () => void = () => undefined;
    const done = new Promise<void>((resolve) => (finish = resolve));
    const first = await calls.beginCall({ ...request, peer: peerWith('one') }, (asked) => {
      server = asked;
      return asking({ content: [] }, done)(asked);
    });
    for (let progress = 1; progress <= 102; progress++) server!.tell('notifications/progress', { progress });
    expect(received).toEqual([]);
    const { requestState } = first as { requestState: string };
    const again = { ...peerWith('two'), answers: { requestState, inputResponses: {} } };
    const second = calls.resumeCall({ ...request, peer: again });
    await turn();
    server!.tell('notifications/progress', { progress: 103 });
    finish();
    await second;
    expect(received).toEqual(Array.from({ length: 101 }, (_, at) => ({ progress: at + 3, progressToken: 'two' })));
  });
});
