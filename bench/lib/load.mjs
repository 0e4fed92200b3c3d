import { Pool } from 'undici';

/**
 * Sends the same request over a number of keep-alive connections for some seconds.
 * Returns requests per second, latency percentiles in ms (`first50`: until the first bytes of the body) and how many answers were
 * not as expected.
 */
export async function load(
  url,
  { method = 'POST', headers = {}, body, connections = 50, seconds = 4, expect = () => true },
) {
  const { origin, pathname, search } = new URL(url);
  const pool = new Pool(origin, { connections, pipelining: 1 });
  const text = typeof body === 'function' ? body : () => body;
  const latencies = [];
  const firsts = [];
  let wrong = 0;
  let running = true;
  const started = performance.now();
  const worker = async () => {
    while (running) {
      const at = performance.now();
      const response = await pool.request({
        path: pathname + search,
        method,
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
        body: method === 'GET' ? undefined : text(),
      });
      const chunks = [];
      for await (const chunk of response.body) {
        if (chunks.length === 0) firsts.push(performance.now() - at);
        chunks.push(chunk);
      }
      latencies.push(performance.now() - at);
      const answer = Buffer.concat(chunks).toString('utf8');
      if (response.statusCode !== 200 || !expect(answer)) wrong++;
    }
  };
  const workers = Array.from({ length: connections }, worker);
  setTimeout(() => (running = false), seconds * 1_000);
  await Promise.all(workers);
  const elapsed = (performance.now() - started) / 1_000;
  await pool.close();
  const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))];
  for (const list of [latencies, firsts]) list.sort((a, b) => a - b);
  return {
    rps: latencies.length / elapsed,
    p50: at(latencies, 0.5),
    p99: at(latencies, 0.99),
    first50: at(firsts, 0.5),
    wrong,
  };
}

/** Median with least and greatest of a list of numbers. */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)], least: sorted[0], most: sorted.at(-1) };
}

export function show({ median, least, most }, digits = 2) {
  return `${median.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}
