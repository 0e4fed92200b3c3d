import { afterChange, isForgotten, backoffOf, type RefreshPace } from './refresh-backoff.js';

const day = 86_400_000;

/** Counts the changes found in one day at a server that reports a change again right after each poll. */
function changesFoundInADay(isChanged: (poll: number) => boolean): number {
  let [pace, found, polls]: [RefreshPace | undefined, number, number] = [undefined, 0, 0];
  for (let now = 0; now < day; now += Math.max(2_000, backoffOf(pace, now))) {
    if (!isChanged(polls++)) continue;
    pace = afterChange(pace, now);
    found++;
  }
  return found;
}

describe('how long the gateway waits before it reads a changed server again', () => {
  it('doubles the delay after each change, and forgets old changes', () => {
    let pace: RefreshPace | undefined;
    expect(backoffOf(pace, 0)).toBe(0);
    const delays: number[] = [];
    for (let now = 0; delays.length < 5; now += delays.at(-1)!) {
      pace = afterChange(pace, now);
      delays.push(Math.round(backoffOf(pace, now) / 1_000));
    }
    expect(delays).toEqual([2, 4, 8, 16, 32]);
    expect([isForgotten(pace!, 60_000), isForgotten(pace!, 3_600_000)]).toEqual([false, true]);
    expect(backoffOf(afterChange(pace, day), day)).toBe(2_000);
  });

  it('keeps the audit of one day short for every pattern of changes', () => {
    expect(changesFoundInADay(() => true)).toBeLessThan(200);
    expect(changesFoundInADay((poll) => poll % 2 === 0)).toBeLessThan(200);
    expect(changesFoundInADay((poll) => poll % 20 === 0)).toBeLessThan(200);
  });
});
