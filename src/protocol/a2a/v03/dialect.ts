import type { Dialect } from '../dialect.js';
import { decode, isStreamMethod } from './decode.js';
import { encodeResult } from './encode.js';
import { encodeEvent } from './objects.js';

/** JSON-RPC of A2A v0.3 (specification section 7), and the older spellings of it that are in the field (../aliases.ts). */
export const v03: Dialect = {
  version: '0.3',
  decode,
  readsStreamOnly: isStreamMethod,
  encodeResult,
  encodeEvent,
};
