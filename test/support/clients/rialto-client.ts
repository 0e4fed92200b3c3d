import { A2AClient, A2AClientError, type A2AClientOptions } from '../../../src/a2a-client/client.js';
import { closing } from './bridge.js';

const allow = '127.0.0.0/8';
/** Options of a client that may connect to loopback and polls every 10 ms. */
export const fast = { allow, pollMs: 10 };
export const dialects = ['v1-jsonrpc', 'v1-rest', 'v03-jsonrpc', 'v03-rest'] as const;

export function clientOf({ url }: { url: string }, options: A2AClientOptions = {}): A2AClient {
  return closing(new A2AClient(url, { allow, ...options }));
}

/** Returns the `A2AClientError` that the work fails with. Rethrows any other error. */
export async function failure(work: Promise<unknown>): Promise<A2AClientError> {
  const error: unknown = await work.then(
    () => new Error('the work did not fail'),
    (reason: unknown) => reason,
  );
  if (!(error instanceof A2AClientError)) throw error;
  return error;
}

export async function all<Event>(events: AsyncIterable<Event>): Promise<Event[]> {
  const list: Event[] = [];
  for await (const event of events) list.push(event);
  return list;
}
