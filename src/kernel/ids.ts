import { randomBytes } from 'node:crypto';
import { systemClock } from './clock.js';

declare const brand: unique symbol;
type Branded<Name extends string> = string & { readonly [brand]: Name };

export type OrgId = Branded<'OrgId'>;
export type AgentId = Branded<'AgentId'>;
export type TaskId = Branded<'TaskId'>;
export type PolicyId = Branded<'PolicyId'>;
export type KeyId = Branded<'KeyId'>;
/** One act for a caller; also the id of its audit event. */
export type ActId = Branded<'ActId'>;

// Random bytes are read in blocks: a system call for each id costs more than all other work on the ids of a request.
const poolBytes = 4_096;
let pool = '';
let used = 0;
let bytePool = Buffer.alloc(0);
let usedBytes = 0;

/** Returns up to 4,096 random bytes, such as a nonce: a view of a block, to be copied before it is passed on. */
export function randomBlock(bytes: number): Buffer {
  if (usedBytes + bytes > bytePool.length) {
    bytePool = randomBytes(poolBytes);
    usedBytes = 0;
  }
  usedBytes += bytes;
  return bytePool.subarray(usedBytes - bytes, usedBytes);
}

/** Returns random bytes as lower-case hex, for ids that other standards define (W3C Trace Context). */
export function randomHex(bytes: number): string {
  if (used + bytes * 2 > pool.length) {
    pool = randomBytes(poolBytes).toString('hex');
    used = 0;
  }
  used += bytes * 2;
  return pool.slice(used - bytes * 2, used);
}

// Cached, because many ids are created in the same millisecond.
let known = { time: 0, prefix: '' };

function timePrefix(time: number): string {
  if (known.time !== time) {
    const digits = time.toString(16).padStart(12, '0');
    known = { time, prefix: `${digits.slice(0, 8)}-${digits.slice(8)}-7` };
  }
  return known.prefix;
}

const variants = ['8', '9', 'a', 'b'];

/** Creates a globally unique id that sorts by creation time: a UUID of version 7 (RFC 9562 section 5.7). */
export function newId<Id extends string = string>(): Id {
  const random = randomHex(10);
  const variant = variants[random.charCodeAt(3) & 3]!;
  const prefix = timePrefix(systemClock.now());
  return `${prefix}${random.slice(0, 3)}-${variant}${random.slice(4, 7)}-${random.slice(8)}` as Id;
}

/** Returns the smallest id that can be created at a time, in milliseconds since the epoch. */
export function firstIdOf(time: number): string {
  return `${timePrefix(time)}000-8000-000000000000`;
}

const uuidShape = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** True when the database can compare the text with a `uuid` column without an error. */
export function isUuid(text: string): boolean {
  return uuidShape.test(text);
}
