import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FetchLike, JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { shielded } from '../../protocol/exact-integers.js';

/*
 * The HTTP transports of the SDK parse JSON themselves and round integers to doubles. Incoming texts are shielded
 * before the SDK parses them; each parsed message is restored afterwards (upstream-transports.ts).
 */

/**
 * Maximum number of lines of an event stream in one turn of the event loop: an endless stream must not block other
 * work.
 */
const linesInOneTurn = 60;

/** Wraps a `fetch` so that integers in its JSON bodies and events are shielded. */
export function shieldingFetch(out: FetchLike): FetchLike {
  return async (input, init) => {
    const answer = await out(input, init);
    const type = answer.headers.get('content-type') ?? '';
    if (!answer.body) return answer;
    const body = type.startsWith('text/event-stream')
      ? answer.body.pipeThrough(inLines(shieldedLines()))
      : type.startsWith('application/json')
        ? answer.body.pipeThrough(whole())
        : undefined;
    if (!body) return answer;
    const { status, statusText, headers } = answer;
    return new Response(body, { status, statusText, headers });
  };
}

/** Applies a change to each message of a connection before any handler receives it, exactly once. */
export function hearing(connection: Transport, change: (message: JSONRPCMessage) => JSONRPCMessage): Transport {
  const changed = new WeakSet<object>();
  let handler: Transport['onmessage'];
  // A handler that is set later calls the one that was set before, so a message may pass here twice.
  return Object.defineProperty(connection, 'onmessage', {
    get: () => handler,
    set: (next: Transport['onmessage']) => {
      handler =
        next &&
        ((message, extra) => {
          const restoredMessage = changed.has(message) ? message : change(message);
          changed.add(restoredMessage);
          next(restoredMessage, extra);
        });
    },
  });
}

function whole(): TransformStream<Uint8Array, Uint8Array> {
  const chunks: Uint8Array[] = [];
  return new TransformStream({
    transform: (chunk) => void chunks.push(chunk),
    flush: (controller) => controller.enqueue(Buffer.from(shielded(Buffer.concat(chunks).toString('utf8')))),
  });
}

/**
 * Passes on text in whole lines as soon as they are complete, a few per turn of the event loop. A line break of two
 * characters may be split between two chunks.
 */
function inLines(change: (lines: string) => string): TransformStream<Uint8Array, Uint8Array> {
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  let open: string[] = [];
  return new TransformStream({
    async transform(chunk, controller) {
      const text = decoder.decode(chunk, { stream: true });
      const end = Math.max(text.lastIndexOf('\n'), text.lastIndexOf('\r')) + 1;
      if (end === 0) return void open.push(text);
      const lines = change(open.join('') + text.slice(0, end));
      open = [text.slice(end)];
      for (const some of batchesOf(lines)) {
        controller.enqueue(Buffer.from(some));
        await nextTurn();
      }
    },
    flush: (controller) => controller.enqueue(Buffer.from(open.join('') + decoder.decode())),
  });
}

function* batchesOf(lines: string): Generator<string> {
  let [from, count] = [0, 0];
  for (const { 0: end, index } of lines.matchAll(/\r\n|\r|\n/g)) {
    if (++count % linesInOneTurn !== 0) continue;
    yield lines.slice(from, index + end.length);
    from = index + end.length;
  }
  if (from < lines.length) yield lines.slice(from);
}

/** Shields only data that begins like JSON: the address that an old server announces for its messages is not JSON. */
function shieldedLines(): (lines: string) => string {
  let isJson = false;
  const shieldedLine = (line: string): string => {
    if (!line.startsWith('data:')) return line;
    isJson ||= /^data:\s*[[{]/.test(line);
    return isJson ? `data:${shielded(line.slice('data:'.length))}` : line;
  };
  return (lines) => {
    // The parts alternate between lines and line ends; an empty line ends an event.
    const parts = lines.split(/(\r\n|\r|\n)/);
    for (let at = 0; at < parts.length - 1; at += 2) {
      parts[at] = shieldedLine(parts[at]!);
      if (parts[at] === '') isJson = false;
    }
    return parts.join('');
  };
}
