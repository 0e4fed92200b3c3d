import type { Dialect } from '../dialect.js';
import { decode } from './decode.js';
import { encodeEvent, encodeResult } from './encode.js';

/** The JSON-RPC dialect of A2A v1.0 (specification section 9). */
export const v1: Dialect = { version: '1.0', decode, encodeResult, encodeEvent };
