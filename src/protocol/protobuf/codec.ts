import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import {
  durationOf,
  entryOf,
  forEachField,
  readStruct,
  readTimestamp,
  readValue,
  structOf,
  timestampOf,
  valueOf,
} from './values.js';
import { WireError, WireWriter, wireTypes, type WireReader } from './wire.js';

/*
 * Converts protocol buffer messages to their JSON (ProtoJSON) and back, driven by tables. Fields that are not on the
 * wire are not in the JSON, so the reader of the JSON sees exactly what was sent: defaults, unknown enum values and
 * `null` are neither added nor lost.
 */

/** The type of a field, which decides how its value is written. `enum` maps names to numbers. */
export type FieldType =
  | 'text'
  | 'flag'
  | 'int32'
  | 'bytes'
  | 'struct'
  | 'value'
  | 'timestamp'
  | 'duration'
  | { readonly enum: Readonly<Record<string, number>> }
  | { readonly message: Schema }
  /** Only written, because no request of A2A has a map. */
  | { readonly map: FieldType };

export interface Field {
  readonly number: number;
  readonly type: FieldType;
  readonly repeated?: boolean;
  /** True for a field with presence (`optional`, or in a `oneof`): a default value is written too. */
  readonly present?: boolean;
}

/** The fields of a message by their JSON names. */
export type Schema = Readonly<Record<string, Field>>;

export type ParsedMessage =
  { readonly ok: true; readonly value: JsonObject } | { readonly ok: false; readonly reason: string };

/** Reads the JSON of a message from its bytes. Never throws; the reason never quotes what was sent. */
export function parseMessage(schema: Schema, bytes: Buffer): ParsedMessage {
  try {
    return { ok: true, value: read(schema, bytes) };
  } catch (error) {
    if (error instanceof WireError) return { ok: false, reason: error.message };
    throw error;
  }
}

/** Reads one text of a message and skips the rest; undefined when it is absent or the bytes are not a message. */
export function peekText({ number: wanted }: Field, bytes: Buffer): string | undefined {
  let found: string | undefined;
  try {
    forEachField(bytes, (reader, number, wireType) => {
      if (number !== wanted || wireType !== wireTypes.bytes) return false;
      found = reader.text();
      return true;
    });
  } catch (error) {
    if (error instanceof WireError) return undefined;
    throw error;
  }
  return found === '' ? undefined : found;
}

/**
 * Writes the bytes of a message from JSON that the gateway built; members that the schema does not know are omitted.
 */
export function writeMessage(schema: Schema, json: JsonObject): Buffer {
  const writer = new WireWriter();
  for (const [name, field] of Object.entries(schema)) {
    const value = Object.hasOwn(json, name) ? json[name] : undefined;
    if (value === undefined || (value === null && field.type !== 'value')) continue;
    if (typeof field.type === 'object' && 'map' in field.type) writeMap(writer, field.number, field.type.map, value);
    else if (field.repeated) for (const item of value as Json[]) write(writer, { ...field, present: true }, item);
    else write(writer, field, value);
  }
  return writer.finish();
}

const byNumber = new WeakMap<Schema, Map<number, [string, Field]>>();

function fieldOf(schema: Schema, number: number): [string, Field] | undefined {
  let fields = byNumber.get(schema);
  if (!fields) {
    fields = new Map(Object.entries(schema).map(([name, field]) => [field.number, [name, field]]));
    byNumber.set(schema, fields);
  }
  return fields.get(number);
}

function read(schema: Schema, bytes: Buffer): JsonObject {
  const object: JsonObject = {};
  forEachField(bytes, (reader, number, wireType) => {
    const [name, field] = fieldOf(schema, number) ?? [];
    if (name === undefined || field === undefined || wireType !== wireTypeOf(field.type)) return false;
    const value = readField(reader, field.type);
    const before = object[name];
    if (!field.repeated) object[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else object[name] = [value];
    return true;
  });
  return object;
}

/** Types that are written with the length of the value in front. */
type BlockType = Exclude<FieldType, 'text' | 'flag' | 'int32'>;

function isMessage(type: FieldType): type is { readonly message: Schema } {
  return typeof type === 'object' && 'message' in type;
}

function textOf(value: Json): string {
  return typeof value === 'string' ? value : '';
}

function wireTypeOf(type: FieldType): number {
  const isNumber = type === 'flag' || type === 'int32' || (typeof type === 'object' && 'enum' in type);
  return isNumber ? wireTypes.varint : wireTypes.bytes;
}

function readField(reader: WireReader, type: FieldType): Json {
  if (type === 'flag') return reader.unsigned() !== 0;
  if (type === 'int32') return reader.int32();
  if (type === 'text') return reader.text();
  if (typeof type === 'object' && 'enum' in type) {
    const number = reader.int32();
    return Object.keys(type.enum).find((name) => type.enum[name] === number) ?? number;
  }
  return readBlock(type, reader.block());
}

/** Reads a value that has its length in front. */
function readBlock(type: BlockType, block: Buffer): Json {
  switch (type) {
    case 'bytes':
      return block.toString('base64');
    case 'struct':
      return readStruct(block);
    case 'value':
      return readValue(block);
    case 'timestamp':
      return readTimestamp(block);
    case 'duration': // no request has one
      return null;
    default:
      return isMessage(type) ? read(type.message, block) : null;
  }
}

function writeMap(writer: WireWriter, number: number, type: FieldType, value: Json): void {
  if (!isJsonObject(value)) return;
  for (const [key, item] of Object.entries(value)) {
    writer.block(number, entryOf(key, type === 'text' ? Buffer.from(textOf(item)) : blockOf(type as BlockType, item)));
  }
}

function write(writer: WireWriter, { number, type, present = false }: Field, value: Json): void {
  if (type === 'text') {
    if (present || value !== '') writer.text(number, textOf(value));
  } else if (type === 'flag') {
    if (present || value === true) writer.varint(number, value === true ? 1 : 0);
  } else if (type === 'int32') {
    if (present || value !== 0) writer.varint(number, Math.trunc(Number(value)));
  } else if (typeof type === 'object' && 'enum' in type) {
    const known = typeof value === 'string' && Object.hasOwn(type.enum, value) ? type.enum[value]! : 0;
    if (present || known !== 0) writer.varint(number, known);
  } else writer.block(number, blockOf(type, value));
}

function blockOf(type: BlockType, value: Json): Uint8Array {
  switch (type) {
    case 'bytes':
      return Buffer.from(textOf(value), 'base64');
    case 'struct':
      return structOf(isJsonObject(value) ? value : {});
    case 'value':
      return valueOf(value);
    case 'timestamp':
      return timestampOf(textOf(value)) ?? Buffer.alloc(0);
    case 'duration':
      return durationOf(textOf(value));
    default:
      return isMessage(type) && isJsonObject(value) ? writeMessage(type.message, value) : Buffer.alloc(0);
  }
}
