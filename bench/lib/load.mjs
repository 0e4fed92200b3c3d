import { Pool } from 'undici';

/**
 * Sends the same POST over a number of keep-alive connections for some seconds.
 * Returns requests per second, latency percentiles in ms and how many answers were not as expected.
 */
export async function load(url, { headers = {}, body, connections = 50, seconds = 4, expect = () => true }) {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const text = typeof body === 'function' ? body : () => body;
  const latencies = [];
  let wrong = 0;
  let running = true;
  const started = performance.now();
  const worker = async () => {
    while (running) {
      const at = performance.now();
      const response = await pool.request({
        path: pathname + search,
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
        body: text(),
      });
      const answer = await response.body.text();
      latencies.push(performance.now() - at);
      if (response.statusCode !== 200 || !expect(answer)) wrong++;
    }
  };
  const workers = Array.from({ length: connections }, worker);
  setTimeout(() => (running = false), seconds * 1_000);
  await Promise.all(workers);
  const elapsed = (performance.now() - started) / 1_000;
  await pool.close();
  latencies.sort((a, b) => a - b);
  const at = (share) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))];
  return { rps: latencies.length / elapsed, p50: at(0.5), p99: at(0.99), wrong };
}

/** Median with least and greatest of a list of numbers. */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)], least: sorted[0], most: sorted.at(-1) };
}

export function show({ median, least, most }, digits = 2) {
  return `${median.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}
