/*
 * Loaded before a gateway in a separate process (`--import`). Measures the event loop and writes the results to the
 * file FUZZ_LOOP_FILE, one line of JSON each. A turn of the loop counts by its CPU time, because on a busy machine a
 * process may wait for a CPU without any fault of its own.
 */
import { appendFileSync, readFileSync } from 'node:fs';
import { monitorEventLoopDelay, PerformanceObserver } from 'node:perf_hooks';

const file = process.env.FUZZ_LOOP_FILE;
const everyMs = 10;
const noticedMs = 50;
const delays = monitorEventLoopDelay({ resolution: everyMs });
const collections = [];

/** Returns the CPU time of this thread in milliseconds, or the elapsed time where /proc does not provide it. */
function ranMs() {
  try {
    return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6;
  } catch {
    return performance.now();
  }
}

function writeLine(line) {
  appendFileSync(file, `${JSON.stringify(line)}\n`);
}

function watch() {
  let [last, ran] = [performance.now(), ranMs()];
  setInterval(() => {
    const [now, runs] = [performance.now(), ranMs()];
    const lagMs = now - last - everyMs;
    if (lagMs > noticedMs) {
      const [from, usedMs, at] = [last, runs - ran, Date.now()];
      // The entry of the garbage collector arrives a moment later.
      setTimeout(() => {
        const gcMs = collections
          .filter(({ start, length }) => start + length > from && start < now)
          .reduce((sum, { length }) => sum + length, 0);
        writeLine({ at, lagMs: Math.round(lagMs), usedMs: Math.round(usedMs), gcMs: Math.round(gcMs) });
      }, 20);
    }
    [last, ran] = [now, runs];
  }, everyMs).unref();
}

if (file) {
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) collections.push({ start: startTime, length: duration });
    collections.splice(0, collections.length - 1_000);
  }).observe({ entryTypes: ['gc'] });
  watch();
  delays.enable();
  process.on('SIGWINCH', () => {
    const ms = (nanoseconds) => Math.round(nanoseconds / 1e5) / 10;
    const polluted = {}.polluted !== undefined;
    const p = (percent) => ms(delays.percentile(percent));
    writeLine({
      summary: { p50: p(50), p99: p(99), p999: p(99.9), max: ms(delays.max) },
      rss: process.memoryUsage.rss(),
      polluted,
    });
    delays.reset();
  });
}
