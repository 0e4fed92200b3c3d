import { setImmediate as nextTurn } from 'node:timers/promises';
import type { FetchLike, JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { Json } from '../../kernel/json.js';
import { parsing } from '../../protocol/json-pieces.js';
import { shielded, shielding } from '../../protocol/exact-integers.js';
import { beyondLimits } from '../../protocol/json-text.js';
import { invalidAnswer, linesInOneTurn, webLimits } from './answer-reader.js';
import { OpenEvent, OpenLine } from './event-parts.js';
import type { LongMessages } from './long-messages.js';
import { ByteCollector } from '../../platform/byte-collector.js';
import { inTurns, longText } from '../../platform/turns.js';

/*
 * The HTTP transports of the SDK parse JSON themselves and round integers to doubles. Incoming texts are shielded
 * before the SDK parses them; each parsed message is restored afterwards (upstream-transports.ts).
 */

const lineFeed = 10;
const carriageReturn = 13;

/** Wraps a `fetch` so that integers in its JSON bodies and events are shielded, and long ones are parsed in turns. */
export function shieldingFetch(out: FetchLike, long: LongMessages): FetchLike {
  return async (input, init) => {
    const answer = await out(input, init);
    const type = answer.headers.get('content-type') ?? '';
    if (!answer.body) return answer;
    if (type.startsWith('application/json'))
      return Object.defineProperty(answer, 'json', {
        value: () => textOf(answer.body!).then((text) => parseAnswer(text, long)),
      });
    if (!type.startsWith('text/event-stream')) return answer;
    const { status, statusText, headers } = answer;
    return new Response(answer.body.pipeThrough(inLines(shieldedLines(long))), { status, statusText, headers });
  };
}

async function textOf(body: ReadableStream<Uint8Array>): Promise<string> {
  const collector = new ByteCollector();
  for await (const chunk of body) {
    collector.add(chunk);
    if (collector.isShredded) throw invalidAnswer('it has too many tiny chunks');
  }
  return new TextDecoder().decode(collector.bytes);
}

function parseAnswer(text: string, long: LongMessages): unknown {
  return text.length < longText ? JSON.parse(shielded(text)) : inTurns(parsingAnswer(text, long));
}

function* parsingAnswer(text: string, long: LongMessages): Generator<void, Json> {
  const reason = yield* beyondLimits(text, webLimits(text));
  if (reason !== undefined) throw invalidAnswer(reason);
  return yield* long.shortening(yield* parsing(yield* shielding(text)));
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

/**
 * Passes on text in whole lines as soon as they are complete, a few per turn of the event loop. A line break of two
 * characters may be split between two chunks.
 */
function inLines(change: (lines: string, skipped: number) => Promise<string>): TransformStream<Uint8Array, Uint8Array> {
  const open = new OpenLine();
  return new TransformStream({
    async transform(given, controller) {
      const chunk = Buffer.from(given.buffer, given.byteOffset, given.length);
      const end = Math.max(chunk.lastIndexOf(lineFeed), chunk.lastIndexOf(carriageReturn)) + 1;
      if (end === 0) return open.add(chunk);
      const first = firstLineEnd(chunk);
      open.add(chunk.subarray(0, first));
      const { text, skipped } = open.take();
      const lines = await change(text + chunk.toString('utf8', first, end), skipped);
      open.add(chunk.subarray(end));
      for (const some of batchesOf(lines)) {
        controller.enqueue(Buffer.from(some));
        await nextTurn();
      }
    },
    flush: (controller) => controller.enqueue(Buffer.from(open.take().text)),
  });
}

function firstLineEnd(chunk: Buffer): number {
  const [feed, back] = [chunk.indexOf(lineFeed), chunk.indexOf(carriageReturn)];
  return feed < 0 || back < 0 ? Math.max(feed, back) : Math.min(feed, back);
}

function* batchesOf(lines: string): Generator<string> {
  let [from, count] = [0, 0];
  for (let end = lines.indexOf('\n') + 1; end > 0; end = lines.indexOf('\n', end) + 1) {
    if (++count % linesInOneTurn !== 0) continue;
    yield lines.slice(from, end);
    from = end;
  }
  if (from < lines.length) yield lines.slice(from);
}

/**
 * Changes the data of events, and passes on the rest unchanged. Only data that begins like JSON is changed: the address
 * that an old server announces for its messages is not JSON. Data may have several lines, and is complete at the empty
 * line that ends its event. Data above the size limit is dropped. Every line ends in a line feed afterwards: data moves
 * behind the other fields of its event, and a carriage return before a moved line feed would take away an empty line.
 */
function shieldedLines(long: LongMessages): (lines: string, skipped: number) => Promise<string> {
  const event = new OpenEvent();
  /** The SDK reads events without a name, and those named `message`. */
  let name = '';
  let endedInReturn = false;
  const endEvent = async (): Promise<string> => {
    const { raw, content, isTooLong } = event.take();
    const isMessage = /^(?:message)?$/.test(name) && /^\s*[[{]/.test(content);
    if (!isMessage) return isTooLong ? '' : raw;
    if (isTooLong) return `data:${long.refuseTooLong(content)}\n`;
    return raw.length < longText ? shielded(raw) : `data:${await long.shorten(content)}\n`;
  };
  return async (lines, skipped) => {
    const done: string[] = [];
    // A line end of two characters may be cut.
    const isCut = endedInReturn && lines.startsWith('\n');
    const complete = (isCut ? lines.slice(1) : lines).split(/\r\n|\r|\n/).slice(0, -1);
    for (const [at, line] of complete.entries()) {
      if (line === '' && event.isBegun) done.push(await endEvent());
      if (line === '') name = '';
      if (line === 'data' || line.startsWith('data:')) event.add(line, at === 0 ? skipped : 0);
      else done.push(line, '\n');
      if (line.startsWith('event:')) name = line.slice('event:'.length).trim();
    }
    endedInReturn = lines.endsWith('\r');
    return done.join('');
  };
}
