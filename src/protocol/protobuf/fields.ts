import type { Field, FieldType, Schema } from './codec.js';

/*
 * Builders for the tables of messages: each makes one field with the given number. `optional` fields have presence, and
 * so does each field of a `oneof`.
 */

export const text = (number: number): Field => ({ number, type: 'text' });
export const flag = (number: number): Field => ({ number, type: 'flag' });
export const int = (number: number): Field => ({ number, type: 'int32' });
export const bytes = (number: number): Field => ({ number, type: 'bytes' });
export const struct = (number: number): Field => ({ number, type: 'struct' });
export const anyValue = (number: number): Field => ({ number, type: 'value' });
export const time = (number: number): Field => ({ number, type: 'timestamp' });
export const texts = (number: number): Field => ({ number, type: 'text', repeated: true });
export const oneOf = (number: number, names: Readonly<Record<string, number>>): Field => ({
  number,
  type: { enum: names },
});
export const of = (number: number, message: Schema): Field => ({ number, type: { message } });
export const listOf = (number: number, message: Schema): Field => ({ number, type: { message }, repeated: true });
export const mapOf = (number: number, map: FieldType): Field => ({ number, type: { map } });
export const optional = (field: Field): Field => ({ ...field, present: true });

/** Builds an enum with values that are numbered from 0 and share one prefix. */
export function enumOf(prefix: string, ...names: string[]): Readonly<Record<string, number>> {
  return Object.fromEntries(names.map((name, number) => [`${prefix}${name}`, number]));
}
