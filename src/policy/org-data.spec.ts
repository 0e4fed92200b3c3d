import { once } from 'node:events';
import type { CallContext } from '../kernel/call-context.js';
import { OrgData } from './org-data.js';

describe('the export of an org', () => {
  beforeEach(() => void jest.useFakeTimers({ doNotFake: ['nextTick', 'setImmediate', 'queueMicrotask'] }));
  afterEach(() => void jest.useRealTimers());

  const org = { id: 'o', slug: 'acme', name: 'Acme', createdAt: new Date(0) };
  const ctx = {} as CallContext;
  let open = 0;
  /** Returns more rows than the buffer of a reader holds. */
  async function* rows() {
    open++;
    try {
      for (let page = 0; page < 50; page++) yield [{ kind: 'row', data: JSON.stringify('x'.repeat(10_000)) }];
    } finally {
      open--;
    }
  }
  const data = new OrgData(
    { record: (_ctx: unknown, _verb: unknown, _args: unknown, work: () => unknown) => work() } as any,
    { visibleOrg: () => Promise.resolve(org) } as any,
    { rows } as any,
  );

  it('is canceled when its reader stalls, so that the next export can start', async () => {
    const stalled = await data.export(ctx, 'acme');
    await once(stalled, 'readable');
    await expect(data.export(ctx, 'acme')).rejects.toMatchObject({ code: 'unavailable' });
    const broken = once(stalled, 'error');
    jest.advanceTimersByTime(45_000);
    expect(((await broken) as [Error])[0]).toMatchObject({ code: 'canceled' });
    await new Promise(setImmediate);
    expect(open).toBe(0);
    const text = await new Response((await data.export(ctx, 'acme')) as any).text();
    expect(text.trimEnd().split('\n')).toHaveLength(52);
  });

  it('is not canceled while its reader is slow but continues', async () => {
    const slow = await data.export(ctx, 'acme');
    let lines = '';
    for await (const chunk of slow) {
      await new Promise(setImmediate); // timers fire between two turns of the event loop
      jest.advanceTimersByTime(30_000);
      lines += chunk;
    }
    expect(lines.trimEnd().split('\n')).toHaveLength(52);
  });
});
