import { UnreadOutcomes } from './unread-outcomes.js';

describe('UnreadOutcomes', () => {
  const total = { count: 5, weight: 100 };
  const perOwner = { count: 3, weight: 60 };

  it('keeps the newest outcomes up to the limit of the owner', () => {
    const unread = new UnreadOutcomes(total, perOwner);
    const dropped = ['1', '2', '3', '4'].map((id) => unread.addOutcome(id, 'a', 1));
    expect(dropped).toEqual([[], [], [], ['1']]);
    expect([unread.addOutcome('5', 'b', 1), unread.addOutcome('6', 'b', 1), unread.addOutcome('7', 'b', 1)]).toEqual([
      [],
      [],
      ['2'],
    ]);
  });

  it('limits the total length: an owner above its limit loses its own outcomes first', () => {
    const unread = new UnreadOutcomes(total, perOwner);
    expect([unread.addOutcome('x', 'b', 30), unread.addOutcome('1', 'a', 40), unread.addOutcome('2', 'a', 30)]).toEqual(
      [[], [], ['1']],
    );
    expect(unread.addOutcome('3', 'a', 61)).toEqual(['2', '3']);
    unread.addOutcome('4', 'a', 60);
    expect(unread.addOutcome('y', 'c', 20)).toEqual(['x']);
  });

  it('does not count outcomes that were read', () => {
    const unread = new UnreadOutcomes(total, perOwner);
    unread.addOutcome('1', 'a', 60);
    unread.forget('1');
    expect(unread.addOutcome('2', 'a', 60)).toEqual([]);
  });
});
