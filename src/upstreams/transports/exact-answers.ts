import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FetchLike, JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import { shielded } from '../../protocol/exact-integers.js';

/*
 * The SDK's HTTP transports parse JSON themselves, with integers rounded to doubles. What arrives for them is shielded first; each message
 * that they hand on is restored (upstream-transports.ts).
 */

/** Of a stream of events, in one turn of the event loop: a server that says something without end would keep others waiting. */
const linesInOneTurn = 60;

/** A `fetch` whose JSON bodies and events hold shielded integers. */
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

/** Changes each message of a line before anybody hears it, once. */
export function hearing(line: Transport, change: (message: JSONRPCMessage) => JSONRPCMessage): Transport {
  const changed = new WeakSet<object>();
  let handler: Transport['onmessage'];
  // Who comes later hands on to who was there before.
  return Object.defineProperty(line, 'onmessage', {
    get: () => handler,
    set: (next: Transport['onmessage']) => {
      handler =
        next &&
        ((message, extra) => {
          const heard = changed.has(message) ? message : change(message);
          changed.add(heard);
          next(heard, extra);
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

/** Text in whole lines, as soon as they are there, a few a turn. A line break of two characters may be cut in two. */
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
      for (const some of fewOf(lines)) {
        controller.enqueue(Buffer.from(some));
        await nextTurn();
      }
    },
    flush: (controller) => controller.enqueue(Buffer.from(open.join('') + decoder.decode())),
  });
}

function* fewOf(lines: string): Generator<string> {
  let [from, count] = [0, 0];
  for (const { 0: end, index } of lines.matchAll(/\r\n|\r|\n/g)) {
    if (++count % linesInOneTurn !== 0) continue;
    yield lines.slice(from, index + end.length);
    from = index + end.length;
  }
  if (from < lines.length) yield lines.slice(from);
}

/** Only data that begins as JSON does: the address that an old server names for its messages is none. */
function shieldedLines(): (lines: string) => string {
  let isJson = false;
  const shieldedLine = (line: string): string => {
    if (!line.startsWith('data:')) return line;
    isJson ||= /^data:\s*[[{]/.test(line);
    return isJson ? `data:${shielded(line.slice('data:'.length))}` : line;
  };
  return (lines) => {
    // Lines and line ends in turn; an empty line ends its event.
    const parts = lines.split(/(\r\n|\r|\n)/);
    for (let at = 0; at < parts.length - 1; at += 2) {
      parts[at] = shieldedLine(parts[at]!);
      if (parts[at] === '') isJson = false;
    }
    return parts.join('');
  };
}
