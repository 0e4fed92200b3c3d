import { systemClock } from '../../kernel/clock.js';
import type { Logger } from '../telemetry/logger.js';
import { QueueTrouble } from './queue-trouble.js';

it('logs a queue that cannot be reached once in five seconds for each error code, with the number of tries', () => {
  const warn = jest.fn();
  const trouble = new QueueTrouble({ warn } as unknown as Logger);
  const elapsed = jest.spyOn(systemClock, 'elapsed');
  const at = (ms: number, queue = 'sweeps', code = 'ENOENT') => {
    elapsed.mockReturnValue(ms);
    trouble.logTrouble(queue, { message: 'no', code });
  };
  try {
    for (let ms = 0; ms <= 4_900; ms += 100) at(ms);
    at(4_950, 'sweeps', '57P01');
    at(5_000);
    expect(warn.mock.calls.map(([fields]) => fields)).toEqual([
      { queue: 'sweeps', code: 'ENOENT', reason: 'no' },
      { queue: 'sweeps', code: '57P01', reason: 'no' },
      { queue: 'sweeps', code: 'ENOENT', reason: 'no', times: 50 },
    ]);
  } finally {
    elapsed.mockRestore();
  }
});
