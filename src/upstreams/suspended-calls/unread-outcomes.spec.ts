import { UnreadOutcomes } from './unread-outcomes.js';

describe('outcomes that nobody has read yet', () => {
  const most = { count: 5, weight: 100 };
  const ofOne = { count: 3, weight: 60 };

  it('are so many of one owner, the newest', () => {
    const unread = new UnreadOutcomes(most, ofOne);
    const gone = ['1', '2', '3', '4'].map((id) => unread.keep(id, 'a', 1));
    expect(gone).toEqual([[], [], [], ['1']]);
    expect([unread.keep('5', 'b', 1), unread.keep('6', 'b', 1), unread.keep('7', 'b', 1)]).toEqual([[], [], ['2']]);
  });

  it('weigh so much: whoever keeps too much loses its own, and not another', () => {
    const unread = new UnreadOutcomes(most, ofOne);
    expect([unread.keep('x', 'b', 30), unread.keep('1', 'a', 40), unread.keep('2', 'a', 30)]).toEqual([[], [], ['1']]);
    expect(unread.keep('3', 'a', 61)).toEqual(['2', '3']);
    unread.keep('4', 'a', 60);
    expect(unread.keep('y', 'c', 20)).toEqual(['x']);
  });

  it('that were read weigh nothing', () => {
    const unread = new UnreadOutcomes(most, ofOne);
    unread.keep('1', 'a', 60);
    unread.forget('1');
    expect(unread.keep('2', 'a', 60)).toEqual([]);
  });
});
