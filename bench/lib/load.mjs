import { Client } from 'undici';

/**
 * Sends the same request over a number of keep-alive connections for some seconds.
 * Returns requests per second, latency percentiles in ms (`first50`: until the first bytes of the body) and how many answers were
 * not as expected. Works on undici's lowest level, for it shares its cores with the server that it measures.
 */
export async function load(
  url,
  { method = 'POST', headers = {}, body, connections = 50, seconds = 4, expect = () => true },
) {
  const { origin, pathname, search } = new URL(url);
  const sent = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
  const request = () => ({
    path: pathname + search,
    method,
    headers: sent,
    body: method === 'GET' ? undefined : typeof body === 'function' ? body() : body,
  });
  const latencies = [];
  const firsts = [];
  let wrong = 0;
  let running = true;
  const started = performance.now();
  const worker = async () => {
    const client = new Client(origin);
    while (running) {
      const at = performance.now();
      const { status, text, firstAt } = await exchange(client, request());
      latencies.push(performance.now() - at);
      if (firstAt !== undefined) firsts.push(firstAt - at);
      if (status !== 200 || !expect(text)) wrong++;
    }
    await client.close();
  };
  const workers = Array.from({ length: connections }, worker);
  setTimeout(() => (running = false), seconds * 1_000);
  await Promise.all(workers);
  const elapsed = (performance.now() - started) / 1_000;
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

/** One request on undici's lowest level: `{ status, text, firstAt }`. */
export function exchange(client, request) {
  return new Promise((resolve, reject) => {
    const answer = { status: 0, text: '', firstAt: undefined };
    client.dispatch(request, {
      onRequestStart: () => undefined,
      onResponseStart: (_, status) => void (answer.status = status),
      onResponseData: (_, chunk) => {
        answer.firstAt ??= performance.now();
        answer.text += chunk.latin1Slice();
      },
      onResponseEnd: () => resolve(answer),
      onResponseError: (_, error) => reject(error),
    });
  });
}

/** Median with least and greatest of a list of numbers. */
export function spread(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return { median: sorted[Math.floor(sorted.length / 2)], least: sorted[0], most: sorted.at(-1) };
}

export function show({ median, least, most }, digits = 2) {
  return `${median.toFixed(digits)} (${least.toFixed(digits)} to ${most.toFixed(digits)})`;
}
