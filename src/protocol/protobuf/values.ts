import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { largeObject, maxJsonMembers, maxJsonValues } from '../json-text.js';
import { WireError, type WireReader, type WireWriter } from './wire.js';

/*
 * Readers and writers for the messages of google.protobuf with their own form in ProtoJSON: Struct and Value are plain
 * JSON, Timestamp and Duration are texts (protobuf.dev/programming-guides/json).
 */

/** Largest nesting depth, the same as for JSON. */
const maxDepth = 64;
const kinds = { null: 1, number: 2, text: 3, flag: 4, struct: 5, list: 6 } as const;

/** Reads the fields of one message, and limits the work on them as parseJson does for JSON text. */
export class ValueReader {
  private values = 0;
  private inLargeObjects = 0;

  constructor(private readonly reader: WireReader) {}

  /**
   * Calls `visit` for each field. When `visit` returns false, it has read nothing and the field is skipped.
   * @param free fields that do not count as values. More of them do, because a field may come any number of times.
   */
  eachField(free: number, visit: (number: number, wireType: number) => boolean): void {
    for (let fields = 1; !this.reader.isAtEnd; fields++) {
      if (fields > free) this.count();
      const { number, wireType } = this.reader.tag();
      if (!visit(number, wireType)) this.reader.skip(wireType);
    }
  }

  /** Reads the fields of a Struct. Members named `__proto__` are dropped, as in parseJson. */
  readStruct(depth = 1): JsonObject {
    requireDepth(depth);
    const object: JsonObject = {};
    let members = 0;
    this.eachField(0, (number) => {
      if (number !== 1) return false;
      this.countMember(++members);
      let [name, value]: [string, Json] = ['', null];
      this.reader.inBlock(() =>
        this.eachField(2, (part) => {
          if (part === 1) name = this.reader.text();
          else if (part === 2) value = this.reader.inBlock(() => this.readValue(depth + 1));
          else return false;
          return true;
        }),
      );
      if (name !== '__proto__') object[name] = value;
      return true;
    });
    return object;
  }

  /** Reads the fields of a Value; without a kind it is null. Throws WireError for numbers that JSON does not have. */
  readValue(depth = 1): Json {
    const { reader } = this;
    let value: Json = null;
    this.eachField(1, (number) => {
      if (number === kinds.null) value = nothing(reader.unsigned());
      else if (number === kinds.number) value = finite(reader.double());
      else if (number === kinds.text) value = reader.text();
      else if (number === kinds.flag) value = reader.unsigned() !== 0;
      else if (number === kinds.struct) value = reader.inBlock(() => this.readStruct(depth));
      else if (number === kinds.list) value = reader.inBlock(() => this.readList(depth));
      else return false;
      return true;
    });
    return value;
  }

  /** Reads a Timestamp as RFC 3339 text, with three or nine digits of a second. */
  readTimestamp(): string {
    let [seconds, nanos] = [0, 0];
    this.eachField(2, (number) => {
      if (number === 1) seconds = Number(this.reader.int64());
      else if (number === 2) nanos = this.reader.int32();
      else return false;
      return true;
    });
    const time = new Date(seconds * 1_000);
    if (Number.isNaN(time.getTime()) || nanos < 0 || nanos > 999_999_999 || time.getUTCFullYear() > 9_999)
      throw new WireError('a time is out of range');
    const digits = nanos % 1_000_000 === 0 ? 3 : 9;
    return time.toISOString().replace(/\.\d+Z$/, `.${String(nanos).padStart(9, '0').slice(0, digits)}Z`);
  }

  private readList(depth: number): Json[] {
    requireDepth(depth);
    const values: Json[] = [];
    this.eachField(0, (number) => {
      if (number !== 1) return false;
      values.push(this.reader.inBlock(() => this.readValue(depth + 1)));
      return true;
    });
    return values;
  }

  private count(): void {
    if (++this.values > maxJsonValues) throw new WireError(`more than ${maxJsonValues} values`);
  }

  private countMember(members: number): void {
    if (members < largeObject) return;
    this.inLargeObjects += members === largeObject ? members : 1;
    if (this.inLargeObjects > maxJsonMembers)
      throw new WireError(`more than ${maxJsonMembers} members in objects of ${largeObject} or more`);
  }
}

function requireDepth(depth: number): void {
  if (depth > maxDepth) throw new WireError(`nested deeper than ${maxDepth}`);
}

/** Writes the fields of a Struct. */
export function writeStruct(writer: WireWriter, object: JsonObject): void {
  for (const name of Object.keys(object).reverse())
    writer.inBlock(1, () => {
      writer.inBlock(2, () => writeValue(writer, object[name]!));
      writer.text(1, name);
    });
}

/**
 * Writes the fields of a Value. Its numbers are doubles, so an integer that no double holds is written as a string, as
 * ProtoJSON writes an int64.
 */
export function writeValue(writer: WireWriter, value: Json): void {
  if (value === null) writer.varint(kinds.null, 0);
  else if (typeof value === 'number') writer.double(kinds.number, value);
  else if (typeof value === 'bigint') writer.text(kinds.text, String(value));
  else if (typeof value === 'string') writer.text(kinds.text, value);
  else if (typeof value === 'boolean') writer.varint(kinds.flag, value ? 1 : 0);
  else if (isJsonObject(value)) writer.inBlock(kinds.struct, () => writeStruct(writer, value));
  else
    writer.inBlock(kinds.list, () => {
      for (let index = value.length - 1; index >= 0; index--)
        writer.inBlock(1, () => writeValue(writer, value[index]!));
    });
}

/** Writes the fields of a Timestamp; none when the text is not a time. */
export function writeTimestamp(writer: WireWriter, text: string): void {
  const time = Date.parse(text);
  if (Number.isNaN(time)) return;
  const seconds = Math.floor(time / 1_000);
  writeSeconds(writer, seconds, (time - seconds * 1_000) * 1_000_000);
}

/** Writes the fields of a Duration of whole seconds, such as `10s`. */
export function writeDuration(writer: WireWriter, text: string): void {
  writeSeconds(writer, Math.trunc(Number.parseFloat(text) || 0), 0);
}

function writeSeconds(writer: WireWriter, seconds: number, nanos: number): void {
  if (nanos !== 0) writer.varint(2, nanos);
  if (seconds !== 0) writer.varint(1, seconds);
}

/** NullValue has one value only. */
function nothing(_number: number): null {
  return null;
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new WireError('a number is out of range');
}
