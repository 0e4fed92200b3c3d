import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'undici';
import { cpuMicros } from './processes.mjs';

/** Milliseconds before a client polls a task that is not completed; each further poll waits twice as long. */
const pollMs = 20;

/**
 * Runs one shot: sends the same request over a number of keep-alive connections for some seconds. `follow` makes the
 * next body from an answer; then a request ends when `follow` returns undefined. With `pauseMs`, each connection pauses
 * between its requests. Returns requests per second, latency percentiles in ms (`first50`: until the first bytes of the
 * body) and the CPU time of process `pid` per request in µs. Throws an error with the first unexpected answer. Uses the
 * lowest level of undici, because it shares its cores with the measured server.
 */
export async function load(
  { url, pid, method = 'POST', headers = {}, body, expect, follow },
  { connections, seconds, pauseMs = 0 },
) {
  const { origin, pathname, search } = new URL(url);
  const sent = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
  const ask = (client, text) => exchange(client, { path: pathname + search, method, headers: sent, body: text });
  const latencies = [];
  const firsts = [];
  let wrong = 0;
  let firstWrong;
  let running = true;
  const cpuBefore = cpuMicros(pid);
  const started = performance.now();
  const worker = async () => {
    const client = new Client(origin);
    while (running) {
      const at = performance.now();
      let { status, text, firstAt } = await ask(client, body?.());
      let pause = pollMs;
      for (let next; status === 200 && (next = follow?.(text)); pause *= 2) {
        await sleep(pause);
        ({ status, text } = await ask(client, next));
      }
      latencies.push(performance.now() - at);
      if (firstAt !== undefined) firsts.push(firstAt - at);
      if (status !== 200 || !expect(text)) {
        wrong++;
        firstWrong ??= `${status} ${text.slice(0, 500)}`;
      }
      if (pauseMs > 0) await sleep(pauseMs);
    }
    await client.close();
  };
  const workers = Array.from({ length: connections }, worker);
  setTimeout(() => (running = false), seconds * 1_000);
  await Promise.all(workers);
  const elapsed = (performance.now() - started) / 1_000;
  const cpu = (cpuMicros(pid) - cpuBefore) / latencies.length;
  if (wrong > 0)
    throw new Error(`${url}: ${wrong} of ${latencies.length} answers are unexpected; the first: ${firstWrong}`);
  const at = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))];
  for (const list of [latencies, firsts]) list.sort((a, b) => a - b);
  return {
    rps: latencies.length / elapsed,
    p50: at(latencies, 0.5),
    p99: at(latencies, 0.99),
    first50: at(firsts, 0.5),
    cpu,
  };
}

/**
 * Repeats a shot until the cost of the server has settled: two shots in a row are at most 3 % below the best shot
 * before. The cost of a request is the CPU time of the server, or its share of the elapsed time where the CPU time is
 * not known. Prints the costs.
 */
export async function warmUp(name, shot) {
  const most = Number(process.env.WARM_UP_SHOTS ?? 15);
  const costs = [];
  let best = Infinity;
  for (let settled = 0; settled < 2 && costs.length < most;) {
    const { cpu, rps } = await shot();
    const cost = Number.isNaN(cpu) ? 1e6 / rps : cpu;
    settled = cost < best * 0.97 ? 0 : settled + 1;
    best = Math.min(best, cost);
    costs.push(cost);
  }
  console.log(`warm-up of ${name}: ${costs.map((cost) => cost.toFixed(0)).join(', ')} µs a request`);
}

/** Sends one request on the lowest level of undici and returns `{ status, text, firstAt }`. */
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
