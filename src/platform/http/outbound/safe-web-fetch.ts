import { RialtoError } from '../../../kernel/errors.js';
import type { SafeRequest, SafeStream } from './safe-request.js';

/**
 * Limits of an SDK's requests. `headers` runs for each request, just before it is sent, and overrides the SDK's own
 * headers.
 */
export interface FetchLimits {
  deadlineMs: number;
  maxBytes: number;
  signal?: AbortSignal;
  purpose?: SafeRequest['purpose'];
  /** Gets the URL, so that a credential is sent only to the origin it belongs to (abuse 18). */
  headers?: (url: URL) => Promise<Record<string, string>> | Record<string, string>;
}

/** The part of the safe client that `fetch` needs. */
interface Client {
  /** Throws `url_not_allowed`. */
  checkUrl(url: string): unknown;
  stream(request: SafeRequest): Promise<SafeStream>;
}

type Fetch = typeof globalThis.fetch;
type Input = Parameters<Fetch>[0];
type Init = NonNullable<Parameters<Fetch>[1]>;
interface Outgoing {
  url: string;
  method: string;
  headers: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal;
}

const methodsInCapitals = /^(?:get|head|post|put|patch|delete|options)$/i;
/** Statuses that may have no body in a Response (Fetch standard, "null body status"). */
const bodyless = [204, 205, 304];

function plainHeaders(given: Init['headers']): Record<string, string> {
  const headers: Record<string, string> = {};
  if (given instanceof Headers) given.forEach((value, name) => (headers[name] = value));
  else {
    const pairs: Iterable<readonly string[]> =
      Symbol.iterator in (given ?? {})
        ? (given as string[][])
        : Object.entries(given ?? {}).map(([name, value]) => [name, String(value)]);
    for (const [name = '', value = ''] of pairs) headers[name.toLowerCase()] = value;
  }
  return headers;
}

/** Handles any other body or a Request object: the platform's own Request turns it into bytes and a content type. */
async function throughRequest(input: Input, init: Init | undefined): Promise<Outgoing> {
  const request = new Request(input, init);
  const bytes = request.body === null ? undefined : new Uint8Array(await request.arrayBuffer());
  return {
    url: request.url,
    method: request.method,
    headers: plainHeaders(request.headers),
    body: bytes,
    signal: request.signal,
  };
}

async function outgoing(input: Input, init: Init | undefined): Promise<Outgoing> {
  const body = init?.body ?? undefined;
  const plainBody = body === undefined || typeof body === 'string' || body instanceof Uint8Array;
  if (!plainBody || (typeof input !== 'string' && !(input instanceof URL))) return throughRequest(input, init);
  const method = init?.method ?? 'GET';
  const headers = plainHeaders(init?.headers);
  if (typeof body === 'string') headers['content-type'] ??= 'text/plain;charset=UTF-8';
  return {
    url: typeof input === 'string' ? input : input.href,
    method: methodsInCapitals.test(method) ? method.toUpperCase() : method,
    headers,
    body,
    signal: init?.signal ?? undefined,
  };
}

/** A caller of `fetch` expects its own abort reason; every other error stays a RialtoError. */
function asFetchError(error: unknown, signal: AbortSignal | undefined): unknown {
  return signal?.aborted === true ? signal.reason : error;
}

function webStream(body: SafeStream['body'], signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const chunks = body[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await chunks.next();
          if (next.done === true) controller.close();
          else controller.enqueue(next.value);
        } catch (error) {
          throw asFetchError(error, signal);
        }
      },
      cancel: () => body.destroy(),
    },
    { highWaterMark: 0 },
  );
}

function webResponse(answer: SafeStream, signal: AbortSignal | undefined): Response {
  const empty = bodyless.includes(answer.status);
  try {
    const response = new Response(empty ? null : webStream(answer.body, signal), {
      status: answer.status,
      headers: answer.headers,
    });
    if (empty) answer.body.destroy();
    return Object.defineProperty(response, 'url', { value: answer.url });
  } catch (error) {
    answer.body.destroy();
    throw new RialtoError('remote_invalid_response', { cause: error });
  }
}

/**
 * The safe client in the shape of `fetch`: a streaming body, a byte limit and a total deadline. A 3xx is returned as
 * it is.
 */
export function webFetch(client: Client, limits: FetchLimits): Fetch {
  return async (input, init) => {
    const { url, method, headers, body, signal } = await outgoing(input, init);
    const signals = [limits.signal, signal].filter((each) => each !== undefined);
    try {
      client.checkUrl(url);
      const added = (await limits.headers?.(new URL(url))) ?? {};
      for (const name of Object.keys(added)) headers[name.toLowerCase()] = added[name]!;
      const { deadlineMs, maxBytes, purpose } = limits;
      return webResponse(
        await client.stream({ method, url, headers, body, deadlineMs, maxBytes, purpose, signal: signals }),
        signal,
      );
    } catch (error) {
      throw asFetchError(error, signal);
    }
  };
}
