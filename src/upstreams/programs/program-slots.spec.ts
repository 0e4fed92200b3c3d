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
    await group.takeSlot(busy, wait);
    await group.takeSlot(late, wait);
    await group.takeSlot(early, wait);
    expect([busy.isGone, late.isGone, early.isGone]).toEqual([false, true, false]);
    await group.takeSlot(holder(), wait);
    expect([busy.isGone, early.isGone]).toEqual([false, true]);
  });

  it('frees the slot of a program with subscriptions only when no program is idle', async () => {
    const group = new SlotGroup(3);
    const [busy, early, late, idle] = [holder(), holder(undefined, 1), holder(undefined, 2), holder(5)];
    for (const one of [busy, early, late]) await group.takeSlot(one, wait);
    await group.takeSlot(idle, wait);
    expect([early.isGone, late.isGone]).toEqual([true, false]);
    await group.takeSlot(holder(), wait);
    expect([idle.isGone, late.isGone]).toEqual([true, false]);
    await group.takeSlot(holder(), wait);
    expect([busy.isGone, late.isGone]).toEqual([false, true]);
  });

  it('grants slots in order when a program ends or becomes idle', async () => {
    const group = new SlotGroup(1);
    const first = holder();
    const end = await group.takeSlot(first, wait);
    const order: string[] = [];
    const second = holder();
    const taken = [
      group.takeSlot(second, wait).then(() => order.push('second')),
      group.takeSlot(holder(), wait).then(() => order.push('third')),
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
    await group.takeSlot(first, wait);
    const second = group.takeSlot(holder(), wait);
    first.idleSince = 1;
    await second;
    expect(first.isGone).toBe(true);
  });

  it('does not queue an aborted wait or a connection without waiters', async () => {
    const group = new SlotGroup(1);
    const end = await group.takeSlot(holder(), wait);
    const aborted = new AbortController();
    const waiting = group.takeSlot(holder(), { ...wait, signal: aborted.signal });
    aborted.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'unavailable', data: { retryAfterSeconds: 5 } });
    await expect(group.takeSlot(holder(), { ...wait, mayWait: false })).rejects.toThrow('all 1 programs');
    end();
    await group.takeSlot(holder(1), { ...wait, mayWait: false });
    await expect(group.takeSlot(holder(), { ...wait, mayWait: false })).rejects.toThrow();
  });

  it('counts the slots of each org and kind separately', async () => {
    const slots = new ProgramSlots({ RIALTO_STDIO_PROGRAMS: 1 });
    const given = await Promise.all([
      slots.slotsOf('a', 'shared').takeSlot(holder(), wait),
      slots.slotsOf('a', 'own').takeSlot(holder(), wait),
      slots.slotsOf('b', 'shared').takeSlot(holder(), wait),
    ]);
    await expect(slots.slotsOf('a', 'own').takeSlot(holder(), { ...wait, mayWait: false })).rejects.toThrow();
    for (const giveBack of given) giveBack();
    await slots.slotsOf('a', 'own').takeSlot(holder(), { ...wait, mayWait: false });
  });
});
