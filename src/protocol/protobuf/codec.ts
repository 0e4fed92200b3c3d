import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { ValueReader, writeDuration, writeStruct, writeTimestamp, writeValue } from './values.js';
import { WireError, WireReader, WireWriter, wireTypes } from './wire.js';

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
    return { ok: true, value: new MessageReader(bytes).read(schema) };
  } catch (error) {
    if (error instanceof WireError) return { ok: false, reason: error.message };
    throw error;
  }
}

/** Reads one text of a message and skips the rest; undefined when it is absent or the bytes are not a message. */
export function peekText({ number: wanted }: Field, bytes: Buffer): string | undefined {
  let found: string | undefined;
  try {
    const reader = new WireReader(bytes);
    new ValueReader(reader).eachField(0, (number, wireType) => {
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
  writeFields(writer, schema, json);
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

class MessageReader {
  private readonly reader: WireReader;
  private readonly values: ValueReader;

  constructor(bytes: Buffer) {
    this.reader = new WireReader(bytes);
    this.values = new ValueReader(this.reader);
  }

  /** Reads the fields of a message. */
  read(schema: Schema): JsonObject {
    const object: JsonObject = {};
    this.values.eachField(0, (number, wireType) => {
      const [name, field] = fieldOf(schema, number) ?? [];
      if (name === undefined || field === undefined || wireType !== wireTypeOf(field.type)) return false;
      const value = this.readField(field.type);
      const before = object[name];
      if (!field.repeated) object[name] = value;
      else if (Array.isArray(before)) before.push(value);
      else object[name] = [value];
      return true;
    });
    return object;
  }

  private readField(type: FieldType): Json {
    const { reader } = this;
    if (type === 'flag') return reader.unsigned() !== 0;
    if (type === 'int32') return reader.int32();
    if (type === 'text') return reader.text();
    if (type === 'bytes') return reader.block().toString('base64');
    if (typeof type === 'object' && 'enum' in type) {
      const number = reader.int32();
      return Object.keys(type.enum).find((name) => type.enum[name] === number) ?? number;
    }
    return reader.inBlock(() => this.readBlock(type));
  }

  private readBlock(type: BlockType): Json {
    switch (type) {
      case 'struct':
        return this.values.readStruct();
      case 'value':
        return this.values.readValue();
      case 'timestamp':
        return this.values.readTimestamp();
      case 'duration': // no request has one
        return null;
      default:
        return isMessage(type) ? this.read(type.message) : null;
    }
  }
}

/** Types of values with fields, which have their length in front. */
type BlockType = Exclude<FieldType, 'text' | 'flag' | 'int32' | 'bytes'>;

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

function writeFields(writer: WireWriter, schema: Schema, json: JsonObject): void {
  for (const [name, field] of Object.entries(schema).reverse()) {
    const value = Object.hasOwn(json, name) ? json[name] : undefined;
    if (value === undefined || (value === null && field.type !== 'value')) continue;
    if (typeof field.type === 'object' && 'map' in field.type) writeMap(writer, field.number, field.type.map, value);
    else if (field.repeated)
      for (const item of (value as Json[]).toReversed()) write(writer, { ...field, present: true }, item);
    else write(writer, field, value);
  }
}

function writeMap(writer: WireWriter, number: number, type: FieldType, value: Json): void {
  if (!isJsonObject(value)) return;
  for (const [key, item] of Object.entries(value).reverse())
    writer.inBlock(number, () => {
      write(writer, { number: 2, type, present: true }, item);
      writer.text(1, key);
    });
}

function write(writer: WireWriter, { number, type, present = false }: Field, value: Json): void {
  if (type === 'text') {
    if (present || value !== '') writer.text(number, textOf(value));
  } else if (type === 'flag') {
    if (present || value === true) writer.varint(number, value === true ? 1 : 0);
  } else if (type === 'int32') {
    if (present || value !== 0) writer.varint(number, Math.trunc(Number(value)));
  } else if (type === 'bytes') {
    writer.block(number, Buffer.from(textOf(value), 'base64'));
  } else if (typeof type === 'object' && 'enum' in type) {
    const known = typeof value === 'string' && Object.hasOwn(type.enum, value) ? type.enum[value]! : 0;
    if (present || known !== 0) writer.varint(number, known);
  } else writer.inBlock(number, () => writeBlock(writer, type, value));
}

function writeBlock(writer: WireWriter, type: BlockType, value: Json): void {
  switch (type) {
    case 'struct':
      return writeStruct(writer, isJsonObject(value) ? value : {});
    case 'value':
      return writeValue(writer, value);
    case 'timestamp':
      return writeTimestamp(writer, textOf(value));
    case 'duration':
      return writeDuration(writer, textOf(value));
    default:
      if (isMessage(type) && isJsonObject(value)) writeFields(writer, type.message, value);
  }
}
