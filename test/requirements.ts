import { a2e } from './requirements/a2e.js';
import { agentNative } from './requirements/agent-native.js';
import { rensei } from './requirements/rensei.js';
import { reyn } from './requirements/reyn.js';
import { rine } from './requirements/rine.js';
import type { Requirement } from './requirements/row.js';

/** The reference systems by the prefix of their ids, with their requirements. */
export const systems = { RE: rensei, AN: agentNative, AE: a2e, RY: reyn, RI: rine } as const;

/** Every requirement by its id. Tests cite ids in their titles; requirements.spec.ts checks both directions. */
export const requirements: ReadonlyMap<string, Requirement> = new Map(
  Object.values(systems).flatMap((rows) => Object.entries<Requirement>(rows)),
);
