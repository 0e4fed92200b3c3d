import { createLogger } from '../telemetry/logger.js';
import { tellingOutagesOnce } from './outage-log.js';
import { statementError } from './outage.js';

describe('tellingOutagesOnce (R4)', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const away = statementError(Object.assign(new Error('gone'), { code: '57P01' }));

  it('tells the beginning and the end of an outage, and what failed meanwhile', () => {
    const lines: string[] = [];
    const clock = { elapsed: () => Date.now() };
    const log = tellingOutagesOnce(createLogger('debug', { write: (line) => void lines.push(line) }), clock);
    for (let second = 0; second < 30; second++) {
      log.warn({ err: away, sweeper: 'tasks' }, 'a sweep failed');
      log.error({ err: away }, 'a job failed');
      jest.advanceTimersByTime(1_000);
    }
    log.warn({ err: new Error('other') }, 'something else');
    jest.advanceTimersByTime(60_000);
    const told = lines.map((line) => JSON.parse(line) as { msg: string; failures?: number });
    expect(told.map(({ msg }) => msg)).toEqual([
      'a sweep failed; the database is away, and further failures are counted',
      'something else',
      'the database answers again',
    ]);
    expect(told[2]!.failures).toBe(60);
  });
});
