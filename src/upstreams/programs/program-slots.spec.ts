import { ProgramSlots, SlotGroup, type SlotHolder } from './program-slots.js';

describe('SlotGroup: slots for programs (E3, E2)', () => {
  interface Holder extends SlotHolder {
    idleSince: number | undefined;
    isGone: boolean;
  }
  const holder = (idleSince?: number, watchingSince?: number): Holder => {
    const release = () => Promise.resolve(void (one.isGone = true));
    const one: Holder = { idleSince, watchingSince, isGone: false, release };
    return one;
  };
  const wait = { signal: new AbortController().signal, mayWait: true };

  it('frees the slot of the program that is idle for longest, and never of one in use', async () => {
    const group = new SlotGroup(2);
    const [busy, late, early] = [holder(), holder(7), holder(3)];
    await group.take(busy, wait);
    await group.take(late, wait);
    await group.take(early, wait);
    expect([busy.isGone, late.isGone, early.isGone]).toEqual([false, true, false]);
    await group.take(holder(), wait);
    expect([busy.isGone, early.isGone]).toEqual([false, true]);
  });

  it('frees the slot of a program with subscriptions only when no program is idle', async () => {
    const group = new SlotGroup(3);
    const [busy, early, late, idle] = [holder(), holder(undefined, 1), holder(undefined, 2), holder(5)];
    for (const one of [busy, early, late]) await group.take(one, wait);
    await group.take(idle, wait);
    expect([early.isGone, late.isGone]).toEqual([true, false]);
    await group.take(holder(), wait);
    expect([idle.isGone, late.isGone]).toEqual([true, false]);
    await group.take(holder(), wait);
    expect([busy.isGone, late.isGone]).toEqual([false, true]);
  });

  it('grants slots in order when a program ends or becomes idle', async () => {
    const group = new SlotGroup(1);
    const first = holder();
    const end = await group.take(first, wait);
    const order: string[] = [];
    const second = holder();
    const taken = [
      group.take(second, wait).then(() => order.push('second')),
      group.take(holder(), wait).then(() => order.push('third')),
    ];
    await Promise.resolve();
    expect(order).toEqual([]);
    end();
    end();
    await taken[0];
    expect(order).toEqual(['second']);
    second.idleSince = 1;
    group.stirred();
    await taken[1];
    expect([order, second.isGone]).toEqual([['second', 'third'], true]);
  });

  it('notices an idle program without a notification', async () => {
    const group = new SlotGroup(1);
    const first = holder();
    await group.take(first, wait);
    const second = group.take(holder(), wait);
    first.idleSince = 1;
    await second;
    expect(first.isGone).toBe(true);
  });

  it('does not queue an aborted wait or a connection without waiters', async () => {
    const group = new SlotGroup(1);
    const end = await group.take(holder(), wait);
    const aborted = new AbortController();
    const waiting = group.take(holder(), { ...wait, signal: aborted.signal });
    aborted.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'unavailable', data: { retryAfterSeconds: 5 } });
    await expect(group.take(holder(), { ...wait, mayWait: false })).rejects.toThrow('all 1 programs');
    end();
    await group.take(holder(1), { ...wait, mayWait: false });
    await expect(group.take(holder(), { ...wait, mayWait: false })).rejects.toThrow();
  });

  it('counts the slots of each org and kind separately', async () => {
    const slots = new ProgramSlots({ RIALTO_STDIO_PROGRAMS: 1 });
    const given = await Promise.all([
      slots.of('a', 'shared').take(holder(), wait),
      slots.of('a', 'own').take(holder(), wait),
      slots.of('b', 'shared').take(holder(), wait),
    ]);
    await expect(slots.of('a', 'own').take(holder(), { ...wait, mayWait: false })).rejects.toThrow();
    for (const giveBack of given) giveBack();
    await slots.of('a', 'own').take(holder(), { ...wait, mayWait: false });
  });
});
