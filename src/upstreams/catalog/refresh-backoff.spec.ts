import { afterChange, isForgotten, backoffOf, type RefreshPace } from './refresh-backoff.js';

const day = 86_400_000;

/** How often something is found in a day, at a server that says at once after each look that it changed. */
function findsOfADay(isChanged: (look: number) => boolean): number {
  let [pace, finds, looks]: [RefreshPace | undefined, number, number] = [undefined, 0, 0];
  for (let now = 0; now < day; now += Math.max(2_000, backoffOf(pace, now))) {
    if (!isChanged(looks++)) continue;
    pace = afterChange(pace, now);
    finds++;
  }
  return finds;
}

describe('how soon a server is looked over again that has other tools', () => {
  it('is later after each time, and again at once when that is long ago', () => {
    let pace: RefreshPace | undefined;
    expect(backoffOf(pace, 0)).toBe(0);
    const rests: number[] = [];
    for (let now = 0; rests.length < 5; now += rests.at(-1)!) {
      pace = afterChange(pace, now);
      rests.push(Math.round(backoffOf(pace, now) / 1_000));
    }
    expect(rests).toEqual([2, 4, 8, 16, 32]);
    expect([isForgotten(pace!, 60_000), isForgotten(pace!, 3_600_000)]).toEqual([false, true]);
    expect(backoffOf(afterChange(pace, day), day)).toBe(2_000);
  });

  it('is so late that the audit of a day stays short, whatever the server does', () => {
    expect(findsOfADay(() => true)).toBeLessThan(200);
    expect(findsOfADay((look) => look % 2 === 0)).toBeLessThan(200);
    expect(findsOfADay((look) => look % 20 === 0)).toBeLessThan(200);
  });
});
