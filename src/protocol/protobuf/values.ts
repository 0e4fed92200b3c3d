import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { maxJsonMembers } from '../json-text.js';
import { WireError, WireReader, WireWriter } from './wire.js';

/*
 * Readers and writers for the messages of google.protobuf with their own form in ProtoJSON: Struct and Value are plain
 * JSON, Timestamp and Duration are texts (protobuf.dev/programming-guides/json).
 */

/** Largest nesting depth, the same as for JSON. */
const maxDepth = 64;
const kinds = { null: 1, number: 2, text: 3, flag: 4, struct: 5, list: 6 } as const;

/** Reads a Struct. Members named `__proto__` are dropped, as in parseJson. */
export function readStruct(bytes: Buffer, depth = 1): JsonObject {
  if (depth > maxDepth) throw new WireError(`nested deeper than ${maxDepth}`);
  const members = new Map<string, Json>();
  forEachField(bytes, (reader, number) => {
    if (number !== 1) return false;
    let [name, value]: [string, Json] = ['', null];
    forEachField(reader.block(), (entry, part) => {
      if (part === 1) name = entry.text();
      else if (part === 2) value = readValue(entry.block(), depth + 1);
      else return false;
      return true;
    });
    if (name !== '__proto__') members.set(name, value);
    if (members.size > maxJsonMembers) throw new WireError(`an object has more than ${maxJsonMembers} members`);
    return true;
  });
  return Object.fromEntries(members);
}

/** Reads a Value; a Value without a kind is null. Throws WireError for numbers that JSON does not have. */
export function readValue(bytes: Buffer, depth = 1): Json {
  let value: Json = null;
  forEachField(bytes, (reader, number) => {
    if (number === kinds.null) value = nothing(reader.unsigned());
    else if (number === kinds.number) value = finite(reader.double());
    else if (number === kinds.text) value = reader.text();
    else if (number === kinds.flag) value = reader.unsigned() !== 0;
    else if (number === kinds.struct) value = readStruct(reader.block(), depth);
    else if (number === kinds.list) value = readList(reader.block(), depth);
    else return false;
    return true;
  });
  return value;
}

/** Calls `visit` for each field. When `visit` returns false, it has read nothing and the field is skipped. */
export function forEachField(
  bytes: Buffer,
  visit: (reader: WireReader, number: number, wireType: number) => boolean,
): void {
  const reader = new WireReader(bytes);
  while (!reader.isAtEnd) {
    const { number, wireType } = reader.tag();
    if (!visit(reader, number, wireType)) reader.skip(wireType);
  }
}

export function structOf(object: JsonObject): Buffer {
  const writer = new WireWriter();
  for (const [name, value] of Object.entries(object)) writer.block(1, entryOf(name, valueOf(value)));
  return writer.finish();
}

/**
 * Writes a Value. Its numbers are doubles, so an integer that no double holds is written as a string, as ProtoJSON
 * writes an int64.
 */
export function valueOf(value: Json): Buffer {
  const writer = new WireWriter();
  if (value === null) writer.varint(kinds.null, 0);
  else if (typeof value === 'number') writer.double(kinds.number, value);
  else if (typeof value === 'bigint') writer.text(kinds.text, String(value));
  else if (typeof value === 'string') writer.text(kinds.text, value);
  else if (typeof value === 'boolean') writer.varint(kinds.flag, value ? 1 : 0);
  else if (isJsonObject(value)) writer.block(kinds.struct, structOf(value));
  else writer.block(kinds.list, listOf(value));
  return writer.finish();
}

export function entryOf(key: string, value: Uint8Array): Buffer {
  const writer = new WireWriter();
  writer.text(1, key);
  writer.block(2, value);
  return writer.finish();
}

/** Reads a Timestamp as RFC 3339 text, with three or nine digits of a second. */
export function readTimestamp(bytes: Buffer): string {
  const { seconds, nanos } = readSeconds(bytes);
  const time = new Date(seconds * 1_000);
  if (Number.isNaN(time.getTime()) || nanos < 0 || nanos > 999_999_999 || time.getUTCFullYear() > 9_999)
    throw new WireError('a time is out of range');
  const digits = nanos % 1_000_000 === 0 ? 3 : 9;
  return time.toISOString().replace(/\.\d+Z$/, `.${String(nanos).padStart(9, '0').slice(0, digits)}Z`);
}

/** Writes a Timestamp; undefined when the text is not a time. */
export function timestampOf(text: string): Buffer | undefined {
  const time = Date.parse(text);
  if (Number.isNaN(time)) return undefined;
  const seconds = Math.floor(time / 1_000);
  return secondsOf(seconds, (time - seconds * 1_000) * 1_000_000);
}

/** Writes a Duration of whole seconds, such as `10s`. */
export function durationOf(text: string): Buffer {
  return secondsOf(Math.trunc(Number.parseFloat(text) || 0), 0);
}

function readSeconds(bytes: Buffer): { seconds: number; nanos: number } {
  const time = { seconds: 0, nanos: 0 };
  forEachField(bytes, (reader, number) => {
    if (number === 1) time.seconds = Number(reader.int64());
    else if (number === 2) time.nanos = reader.int32();
    else return false;
    return true;
  });
  return time;
}

function secondsOf(seconds: number, nanos: number): Buffer {
  const writer = new WireWriter();
  if (seconds !== 0) writer.varint(1, seconds);
  if (nanos !== 0) writer.varint(2, nanos);
  return writer.finish();
}

function readList(bytes: Buffer, depth: number): Json[] {
  if (depth > maxDepth) throw new WireError(`nested deeper than ${maxDepth}`);
  const values: Json[] = [];
  forEachField(bytes, (reader, number) => {
    if (number !== 1) return false;
    values.push(readValue(reader.block(), depth + 1));
    return true;
  });
  return values;
}

function listOf(values: readonly Json[]): Buffer {
  const writer = new WireWriter();
  for (const value of values) writer.block(1, valueOf(value));
  return writer.finish();
}

/** NullValue has one value only. */
function nothing(_number: number): null {
  return null;
}

function finite(value: number): number {
  if (Number.isFinite(value)) return value;
  throw new WireError('a number is out of range');
}
