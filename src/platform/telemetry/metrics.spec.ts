import perf from 'node:perf_hooks';
import { Metrics } from './metrics.js';

describe('the metrics of a process with several gateways', () => {
  const open: Metrics[] = [];
  const scrape = async (metrics: Metrics) => {
    open.push(metrics);
    return (await fetch(`http://127.0.0.1:${await metrics.listen(0, '127.0.0.1')}/metrics`)).text();
  };
  afterEach(() => {
    for (const metrics of open.splice(0)) metrics.close();
  });

  it('are collected once, with one timer, and served by each', async () => {
    const one = new Metrics();
    const monitor = jest.spyOn(perf, 'monitorEventLoopDelay');
    const other = new Metrics();
    expect(monitor).not.toHaveBeenCalled();
    one.streams.set(3);
    other.streams.set(5);
    for (const [metrics, streams] of [
      [one, 3],
      [other, 5],
    ] as const) {
      const text = await scrape(metrics);
      expect(text).toContain(`rialto_streams ${streams}\n`);
      expect(text).toMatch(/^nodejs_eventloop_lag_seconds /m);
      expect(text).toMatch(/^process_cpu_seconds_total /m);
    }
  });
});
