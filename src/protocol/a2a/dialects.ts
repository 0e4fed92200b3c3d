import type { Dialect } from './dialect.js';
import type { A2aVersion } from './model.js';
import { v03 } from './v03/dialect.js';
import { v1 } from './v1/dialect.js';

/** The dialect of each supported version. */
export const dialects = { '1.0': v1, '0.3': v03 } as const satisfies Record<A2aVersion, Dialect>;
