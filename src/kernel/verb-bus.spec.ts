import type { CallContext } from './call-context.js';
import { RialtoError } from './errors.js';
import type { OrgId } from './ids.js';
import { VerbBus, type Approver, type Decider, type VerbCall } from './verb-bus.js';

describe('an act without a possible decision', () => {
  const call: VerbCall = {
    verb: 'far.work',
    action: 'a2a_invoke',
    resource: { type: 'Skill', id: 'far/work' },
    ctx: { org: { id: 'o' as OrgId } } as CallContext,
  };
  const busOf = (decider: Decider) => {
    const ends: string[] = [];
    const ledger = {
      begin: () => Promise.resolve(),
      end: (_act: unknown, { outcome }: { outcome: string }) => Promise.resolve(void ends.push(outcome)),
    };
    return { bus: new VerbBus({ decider, ledger }), ends };
  };
  const work = jest.fn(() => Promise.resolve('done'));
  beforeEach(() => work.mockClear());

  it.each<[string, Error, string, string]>([
    ['is unavailable while the policies cannot be read', new RialtoError('unavailable'), 'unavailable', 'failed'],
    ['is denied when deciding breaks', new Error('trap'), 'denied', 'denied'],
  ])('%s, and its work never starts', async (_, thrown, code, outcome) => {
    const { bus, ends } = busOf(() => Promise.reject(thrown));
    await expect(bus.around(call, work)).rejects.toMatchObject({ code });
    expect(work).not.toHaveBeenCalled();
    expect(ends).toEqual([outcome]);
  });

  it('asks the approver about an act that needs an approval, and denies it without one', async () => {
    const needs = { groups: ['admin'], lifetimeMs: 1 };
    const asking = { allowed: false, policies: ['ask'], reason: 'forbidden', needs };
    const busWith = (approver?: Approver) => {
      const { bus, ends } = busOf(() => asking);
      if (approver) bus.approveWith(approver);
      return { bus, ends };
    };
    const none = busWith();
    expect(await none.bus.permits(call)).toBe(true);
    await expect(none.bus.around(call, work)).rejects.toMatchObject({ code: 'denied' });
    const waiting = busWith(() => Promise.reject(new RialtoError('approval_required')));
    await expect(waiting.bus.around(call, work)).rejects.toMatchObject({ code: 'approval_required' });
    const broken = busWith(() => Promise.reject(new Error('trap')));
    await expect(broken.bus.around(call, work)).rejects.toMatchObject({ code: 'denied' });
    const away = busWith(() => Promise.reject(new RialtoError('unavailable')));
    await expect(away.bus.around(call, work)).rejects.toMatchObject({ code: 'unavailable' });
    expect(work).not.toHaveBeenCalled();
    const approved = busWith((_act, decision) => Promise.resolve({ ...decision, allowed: true, needs: undefined }));
    expect(await approved.bus.around(call, work)).toBe('done');
    const refused = busWith((_act, decision) => Promise.resolve({ ...decision, needs: undefined }));
    await expect(refused.bus.around(call, work)).rejects.toMatchObject({ code: 'denied' });
    expect([none, waiting, broken, away, approved, refused].map(({ ends }) => ends)).toEqual([
      ['denied'],
      ['denied'],
      ['denied'],
      ['failed'],
      ['completed'],
      ['denied'],
    ]);
  });

  it('makes a list fail instead of hiding its item as forbidden', async () => {
    const { bus } = busOf(() => Promise.reject(new RialtoError('unavailable')));
    await expect(bus.permits(call)).rejects.toMatchObject({ code: 'unavailable' });
    expect(await busOf(() => Promise.reject(new Error('trap'))).bus.permits(call)).toBe(false);
  });
});

it('a subscriber that is removed twice takes no other one with it', async () => {
  const bus = new VerbBus({
    decider: () => Promise.resolve({ allowed: true, policies: [], reason: '' }),
    ledger: { begin: () => Promise.resolve(), end: () => Promise.resolve() },
  });
  const [removed, kept] = [jest.fn(), jest.fn()];
  const remove = bus.subscribe(removed);
  bus.subscribe(kept);
  remove();
  remove();
  const resource = { type: 'Skill' as const, id: 'far/work' };
  const ctx = { org: { id: 'o' as OrgId } } as CallContext;
  await bus.around({ verb: 'far.work', action: 'a2a_invoke', resource, ctx }, () => Promise.resolve('done'));
  expect([removed.mock.calls.length, kept.mock.calls.length > 0]).toEqual([0, true]);
});
