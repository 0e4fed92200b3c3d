import { visitedAtOnce, weightOf, type Json, type JsonObject } from '../kernel/json.js';
import { endOfText, endOfLongText, endOfShortText, isBlank, quote, ScanPauses, testing } from './json-scan.js';

/*
 * JSON.parse and JSON.stringify cannot be interrupted, and take tens of milliseconds when a text has thousands of names
 * or values. These generators do the same work in pieces, with a pause at each `yield` (platform/turns.ts).
 */

/** Levels of long containers that are read in pieces, each by a generator. What lies deeper is read at once. */
const maxLongDepth = 300;
/** Characters that are parsed or written at once. */
const pieceLength = 16_384;

/** Parses JSON text, without members named `__proto__`. Throws a SyntaxError as JSON.parse does. */
export function* parsing(text: string): Generator<void, Json> {
  const compact = yield* withoutLongBlanks(text);
  const long = yield* longContainers(compact);
  return yield* new LongText(compact, long).parse(0, compact.length);
}

/** Writes a value like JSON.stringify. */
export function* writing(value: unknown): Generator<void, string> {
  const writer = new LongWriter(yield* longValues(value));
  yield* writer.write(value);
  return writer.text;
}

/** A list or an object that is too long to be parsed at once. */
interface LongContainer {
  /** Index of its closing bracket. */
  readonly end: number;
  /** Indexes of the commas between its items. */
  readonly commas: readonly number[];
}

class LongText {
  private depth = 0;

  /** @param long by the index of the opening bracket. */
  constructor(
    private readonly text: string,
    private readonly long: ReadonlyMap<number, LongContainer>,
  ) {}

  /** Parses the value between two indexes. */
  *parse(start: number, end: number): Generator<void, Json> {
    this.depth++;
    try {
      return yield* this.parseValue(start, end);
    } finally {
      this.depth--;
    }
  }

  private *parseValue(start: number, end: number): Generator<void, Json> {
    const opening = this.skipBlank(start);
    const container = this.depth > maxLongDepth ? undefined : this.long.get(opening);
    if (!container) return yield* this.parsePiece(start, end, '', '');
    if (this.skipBlank(container.end + 1) < end) throw new SyntaxError('text after a value');
    const isList = this.text[opening] === '[';
    if (this.text[container.end] !== (isList ? ']' : '}')) throw new SyntaxError('brackets that do not match');
    return yield* isList ? this.parseList(opening, container) : this.parseObject(opening, container);
  }

  private *parseList(opening: number, container: LongContainer): Generator<void, Json[]> {
    const list: Json[] = [];
    for (const { start, end, long } of this.runs(opening, container, (item) => item)) {
      if (long === undefined) for (const item of yield* this.parsePiece<Json[]>(start, end, '[', ']')) list.push(item);
      else list.push(yield* this.parse(start, end));
    }
    return list;
  }

  private *parseObject(opening: number, container: LongContainer): Generator<void, JsonObject> {
    const object: JsonObject = {};
    for (const { start, end, long } of this.runs(opening, container, (item) => this.startOfValue(item))) {
      // The name of a long value is parsed with null in its place.
      const members = yield* this.parsePiece<JsonObject>(start, long ?? end, '{', long === undefined ? '}' : 'null}');
      for (const name of Object.keys(members)) {
        const value = long === undefined ? members[name]! : yield* this.parse(long, end);
        if (name !== '__proto__') object[name] = value;
      }
    }
    return object;
  }

  /**
   * Divides the items of a container into runs of short ones, and single ones with a long container; `long` is the
   * index of its value.
   * @param valueOf returns the index where the value of an item begins.
   */
  private *runs(
    opening: number,
    { end, commas }: LongContainer,
    valueOf: (item: number) => number,
  ): Generator<{ readonly start: number; readonly end: number; readonly long?: number }> {
    let start = opening + 1;
    let item = start;
    if (this.skipBlank(start) === end) return;
    for (let index = 0; index <= commas.length; index++) {
      const itemEnd = commas[index] ?? end;
      const value = itemEnd - item > pieceLength ? valueOf(this.skipBlank(item)) : undefined;
      const isLong = value !== undefined && value < itemEnd && this.long.has(value);
      if (isLong && start < item) yield { start, end: item - 1 };
      if (isLong) yield { start: item, end: itemEnd, long: value };
      else if (itemEnd - start > pieceLength || index === commas.length) yield { start, end: itemEnd };
      if (isLong || itemEnd - start > pieceLength) start = itemEnd + 1;
      item = itemEnd + 1;
    }
  }

  private *parsePiece<Piece = Json>(start: number, end: number, before: string, after: string): Generator<void, Piece> {
    yield;
    const piece = this.text.slice(start, end);
    // A list of nothing would be valid by itself, but not beside other items.
    if (before !== '' && piece.trim() === '') throw new SyntaxError('an item is missing');
    return JSON.parse(`${before}${piece}${after}`) as Piece;
  }

  /** Returns the index of the value of a member that begins at the index. */
  private startOfValue(member: number): number {
    const colon = this.text.indexOf(':', endOfText(this.text, member));
    return this.skipBlank(colon + 1);
  }

  private skipBlank(index: number): number {
    while (isBlank(this.text.charCodeAt(index))) index++;
    return index;
  }
}

/** Blanks that are read at once. */
const maxBlanks = 1_000;
// The blank before it is excluded, because a search from each blank would take a thousand times as long.
const mayHoldLongBlanks = /(?<![ \t\r\n])[ \t\r\n]{1000}/;

/** Replaces long white space between the tokens of a text by one blank, so that later steps need no pause there. */
function* withoutLongBlanks(text: string): Generator<void, string> {
  if (!(yield* testing(mayHoldLongBlanks, text, maxBlanks))) return text;
  const kept: string[] = [];
  let [copied, afterToken] = [0, 0];
  const pauses = new ScanPauses();
  for (let index = 0; index < text.length; index++) {
    if (pauses.isDue(index)) yield;
    const code = text.charCodeAt(index);
    if (isBlank(code)) continue;
    if (index - afterToken >= maxBlanks) {
      kept.push(text.slice(copied, afterToken), ' ');
      copied = index;
    }
    if (code === quote) index = endOfShortText(text, index) ?? (yield* endOfLongText(text, index, pauses));
    afterToken = index + 1;
  }
  return kept.join('') + text.slice(copied, afterToken);
}

function* longContainers(text: string): Generator<void, Map<number, LongContainer>> {
  const long = new Map<number, LongContainer>();
  // The commas of all open containers, and for each of these its start and the number of commas before it.
  const commas: number[] = [];
  const [starts, marks]: [number[], number[]] = [[], []];
  const pauses = new ScanPauses();
  for (let index = 0; index < text.length; index++) {
    if (pauses.isDue(index)) yield;
    const code = text.charCodeAt(index);
    if (code === quote) index = endOfShortText(text, index) ?? (yield* endOfLongText(text, index, pauses));
    else if (code === 0x2c) commas.push(index);
    else if (code === 0x5b || code === 0x7b) {
      starts.push(index);
      marks.push(commas.length);
    } else if ((code === 0x5d || code === 0x7d) && starts.length > 0) {
      const [start, mark] = [starts.pop()!, marks.pop()!];
      if (index - start > pieceLength) long.set(start, { end: index, commas: commas.slice(mark) });
      if (commas.length > mark) commas.length = mark;
    }
  }
  return long;
}

/** A list or an object in the middle of a walk. */
interface Walked {
  readonly owner: object;
  /** Names of the members of an object. */
  readonly names: readonly string[] | undefined;
  /** Index of the next item or member. */
  next: number;
  /** Weight of everything before it. */
  readonly before: number;
}

/**
 * Finds the lists and objects that are too long to be written at once. Visits each value once, the containers after
 * their items: to weigh each container by itself would take depth times length.
 */
function* longValues(value: unknown): Generator<void, Set<object>> {
  const long = new Set<object>();
  const open: Walked[] = [];
  let weight = 0;
  const enter = (inner: unknown): void => {
    if (typeof inner === 'string') weight += inner.length;
    else if (typeof inner !== 'object' || inner === null || writesItself(inner)) weight += 8;
    else {
      open.push({
        owner: inner,
        names: Array.isArray(inner) ? undefined : Object.keys(inner),
        next: 0,
        before: weight,
      });
      if (Array.isArray(inner)) weight += inner.length;
    }
  };
  enter(value);
  for (let count = 1; open.length > 0; count++) {
    if (count % visitedAtOnce === 0) yield;
    const walked = open.at(-1)!;
    const { owner, names, before } = walked;
    const index = walked.next++;
    if (index === (names ?? (owner as unknown[])).length) {
      open.pop();
      if (weight - before >= pieceLength) long.add(owner);
    } else if (names) {
      const name = names[index]!;
      weight += name.length;
      enter((owner as Record<string, unknown>)[name]);
    } else enter((owner as unknown[])[index]);
  }
  return long;
}

class LongWriter {
  private readonly done: string[] = [];
  private pieces: string[] = [];
  /** Characters that may still be written before the next pause. */
  private left = pieceLength;

  constructor(private readonly long: ReadonlySet<object>) {}

  get text(): string {
    return this.done.join('') + this.pieces.join('');
  }

  *write(value: unknown): Generator<void, void> {
    if (!this.isLong(value)) this.pieces.push(JSON.stringify(value) ?? 'null');
    else if (Array.isArray(value)) yield* this.writeList(value);
    else yield* this.writeObject(value as Record<string, unknown>);
  }

  private isLong(value: unknown): boolean {
    return typeof value === 'object' && value !== null && this.long.has(value);
  }

  private *writeList(list: readonly unknown[]): Generator<void, void> {
    this.pieces.push('[');
    for (let from = 0, to = 0; from < list.length; from = to) {
      if (from > 0) this.pieces.push(',');
      let length = 0;
      for (; to < list.length && length < pieceLength; to++) {
        const item = list[to];
        if (this.isLong(item)) break;
        length += shortLength(item);
      }
      if (to === from) yield* this.write(list[to++]);
      else this.pieces.push(JSON.stringify(list.slice(from, to)).slice(1, -1));
      if (this.isPauseDue(length)) yield;
    }
    this.pieces.push(']');
  }

  private *writeObject(object: Readonly<Record<string, unknown>>): Generator<void, void> {
    let isFirst = true;
    for (const name of Object.keys(object)) {
      const value = object[name];
      const text = this.isLong(value) ? '' : JSON.stringify(value);
      if (this.isPauseDue(name.length + (text?.length ?? 0) + 8)) yield;
      if (text === undefined) continue;
      this.pieces.push(`${isFirst ? '{' : ','}${JSON.stringify(name)}:${text}`);
      isFirst = false;
      if (text === '') yield* this.write(value);
    }
    this.pieces.push(isFirst ? '{}' : '}');
  }

  /** True when many characters were written since the last pause. */
  private isPauseDue(length: number): boolean {
    this.left -= length;
    if (this.left > 0) return false;
    this.left = pieceLength;
    this.done.push(this.pieces.join(''));
    this.pieces = [];
    return true;
  }
}

/** True for a value with its own form in JSON. A peer may send a member of that name, which is not a function. */
function writesItself(value: object): boolean {
  return typeof (value as { toJSON?: unknown }).toJSON === 'function';
}

/** Returns about the length of a value that is written at once. */
function shortLength(value: unknown): number {
  return (typeof value === 'object' && value !== null && writesItself(value) ? 0 : weightOf(value)) + 8;
}
