import type { Dialect } from '../dialect.js';
import { decode, isStreamMethod } from './decode.js';
import { encodeResult } from './encode.js';
import { encodeEvent } from './objects.js';

/**
 * The JSON-RPC dialect of A2A v0.3 (specification section 7), with the older spellings that clients use
 * (../request/aliases.ts).
 */
export const v03: Dialect = {
  version: '0.3',
  decode,
  readsStreamOnly: isStreamMethod,
  encodeResult,
  encodeEvent,
};
