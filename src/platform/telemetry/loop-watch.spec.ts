import { setTimeout as wait } from 'node:timers/promises';
import { systemClock, workedMs } from '../../kernel/clock.js';
import type { Logger } from './logger.js';
import { LoopWatch } from './loop-watch.js';
import { Metrics } from './metrics.js';

it('X2 reports a blocked event loop, with the route and the org of the request that began last', async () => {
  const info = jest.fn();
  const metrics = new Metrics();
  const watch = new LoopWatch({ latest: () => ({ route: '/mcp', org: 'acme' }) }, metrics, {
    info,
    warn: info,
  } as unknown as Logger);
  // Measured in processor time, so that a busy machine, which gives this process little time, does not count as a
  // blocked loop.
  const elapsed = jest.spyOn(systemClock, 'elapsed').mockImplementation(workedMs);
  watch.onApplicationBootstrap();
  while (info.mock.calls.length === 0) {
    await wait(60);
    for (const until = workedMs() + 300; workedMs() < until;);
  }
  watch.onApplicationShutdown();
  elapsed.mockRestore();
  const [first] = info.mock.calls[0]!;
  expect(first).toMatchObject({ route: '/mcp', org: 'acme', ms: expect.any(Number), workedMs: expect.any(Number) });
  expect(first.ms).toBeGreaterThan(100);
  expect(await metrics.registry.getSingleMetricAsString('rialto_loop_delay_seconds')).toMatch(
    /rialto_loop_delay_seconds_count\{route="\/mcp"\} [1-9]/,
  );
});
