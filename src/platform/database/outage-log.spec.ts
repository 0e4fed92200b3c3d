import { createLogger } from '../telemetry/logger.js';
import { tellingOutagesOnce } from './outage-log.js';
import { statementError } from './outage.js';

describe('tellingOutagesOnce (R4)', () => {
  beforeEach(() => jest.useFakeTimers());
  afterEach(() => jest.useRealTimers());

  const outage = statementError(Object.assign(new Error('gone'), { code: '57P01' }));

  it('logs the beginning and the end of an outage, and the number of failures between them', () => {
    const lines: string[] = [];
    const clock = { elapsed: () => Date.now() };
    const log = tellingOutagesOnce(createLogger('debug', { write: (line) => void lines.push(line) }), clock);
    for (let second = 0; second < 30; second++) {
      log.warn({ err: outage, sweeper: 'tasks' }, 'a sweep failed');
      log.error({ err: outage }, 'a job failed');
      jest.advanceTimersByTime(1_000);
    }
    log.warn({ err: new Error('other') }, 'something else');
    jest.advanceTimersByTime(60_000);
    const logged = lines.map((line) => JSON.parse(line) as { msg: string; failures?: number });
    expect(logged.map(({ msg }) => msg)).toEqual([
      'a sweep failed; the database is not available; further failures are only counted',
      'something else',
      'the database answers again',
    ]);
    expect(logged[2]!.failures).toBe(60);
  });
});
