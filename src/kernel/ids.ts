import { randomFillSync } from 'node:crypto';
import { systemClock } from './clock.js';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type OrgId = Branded<'OrgId'>;
export type AgentId = Branded<'AgentId'>;
export type TaskId = Branded<'TaskId'>;
export type PolicyId = Branded<'PolicyId'>;
export type KeyId = Branded<'KeyId'>;
/** One act on someone's behalf; also the id of its audit event. */
export type ActId = Branded<'ActId'>;

/** A time-ordered UUID (version 7, RFC 9562 section 5.7) from a time in ms and at least ten random bytes. */
function uuidV7(now: number, random: Uint8Array): string {
  const bytes = new Uint8Array(16);
  for (let index = 5, rest = now; index >= 0; index--, rest = Math.floor(rest / 256)) bytes[index] = rest % 256;
  bytes.set(random.subarray(0, 10), 6);
  bytes[6] = (bytes[6]! & 0x0f) | 0x70;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Buffer.from(bytes.buffer).toString('hex');
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

// Asking the system for ten bytes at a time costs more than the rest of a request's ids together.
const pool = new Uint8Array(4_000);
let used = pool.length;

function takeRandom(bytes: number): Uint8Array {
  if (used + bytes > pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.subarray(used - bytes, used);
}

/** A new id: unique everywhere, sorted by its time of making. */
export function newId<Id extends string = string>(): Id {
  return uuidV7(systemClock.now(), takeRandom(10)) as Id;
}

/** Random bytes as lower-case hex, for ids that other standards shape (W3C Trace Context). */
export function randomHex(bytes: number): string {
  return Buffer.from(takeRandom(bytes)).toString('hex');
}

const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True when the text can be compared with a `uuid` column without an error from the database. */
export function isUuid(text: string): boolean {
  return uuidShape.test(text);
}
