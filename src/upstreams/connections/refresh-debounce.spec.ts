import { systemClock } from '../../kernel/clock.js';
import { RefreshDebounce } from './refresh-debounce.js';

describe('looks at what a server has', () => {
  const notice = 'notifications/tools/list_changed';
  let looks: number[];
  let one: RefreshDebounce;

  beforeEach(() => {
    jest.useFakeTimers();
    // The fake timers keep no other clock.
    jest.spyOn(systemClock, 'elapsed').mockImplementation(() => Date.now());
    looks = [];
    one = new RefreshDebounce(() => looks.push(systemClock.elapsed()));
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  /** It says so each `everyMs`. */
  const says = (times: number, everyMs: number): void => {
    for (let time = 0; time < times; time++) {
      one.heard(notice);
      jest.advanceTimersByTime(everyMs);
    }
  };
  const between = () => looks.slice(1).map((at, index) => at - looks[index]!);

  it('are one for all that it says together', () => {
    for (let times = 0; times < 1_000; times++) one.heard(notice);
    const begun = systemClock.elapsed();
    jest.advanceTimersByTime(100);
    expect(looks).toEqual([begun + 100]);
  });

  it('are ever rarer while it goes on to say so, a minute apart at most', () => {
    says(30_000, 10);
    const pauses = between();
    expect(pauses.slice(0, 5)).toEqual([2_000, 4_000, 8_000, 16_000, 32_000]);
    expect(pauses.slice(5).every((ms) => ms === 60_000)).toBe(true);
  });

  it('are soon again once it was silent for as long', () => {
    says(500, 10);
    jest.advanceTimersByTime(60_000);
    looks = [];
    says(3, 2_200);
    expect(between()).toEqual([2_200, 2_200]);
  });
});
