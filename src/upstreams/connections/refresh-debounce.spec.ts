import { systemClock } from '../../kernel/clock.js';
import { RefreshDebounce } from './refresh-debounce.js';

describe('RefreshDebounce', () => {
  const notice = 'notifications/tools/list_changed';
  let reads: number[];
  let debounce: RefreshDebounce;

  beforeEach(() => {
    jest.useFakeTimers();
    // The fake timers do not replace this clock.
    jest.spyOn(systemClock, 'elapsed').mockImplementation(() => Date.now());
    reads = [];
    debounce = new RefreshDebounce(() => reads.push(systemClock.elapsed()));
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  /** Sends the notification the given number of times, at this interval. */
  const notify = (times: number, everyMs: number): void => {
    for (let time = 0; time < times; time++) {
      debounce.heard(notice);
      jest.advanceTimersByTime(everyMs);
    }
  };
  const delays = () => reads.slice(1).map((at, index) => at - reads[index]!);

  it('reads once for notifications that arrive together', () => {
    for (let times = 0; times < 1_000; times++) debounce.heard(notice);
    const begun = systemClock.elapsed();
    jest.advanceTimersByTime(100);
    expect(reads).toEqual([begun + 100]);
  });

  it('reads less and less often while notifications continue, at most one minute apart', () => {
    notify(30_000, 10);
    const pauses = delays();
    expect(pauses.slice(0, 5)).toEqual([2_000, 4_000, 8_000, 16_000, 32_000]);
    expect(pauses.slice(5).every((ms) => ms === 60_000)).toBe(true);
  });

  it('reads soon again after a pause without notifications', () => {
    notify(500, 10);
    jest.advanceTimersByTime(60_000);
    reads = [];
    notify(3, 2_200);
    expect(delays()).toEqual([2_200, 2_200]);
  });
});
