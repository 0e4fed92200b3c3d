import type { Scene } from '../scene.js';
import type { Slot } from '../processes/fleet.js';

export type ScenarioName =
  | 'bells'
  | 'crash'
  | 'deploy'
  | 'duplicates'
  | 'ends'
  | 'handover'
  | 'keys'
  | 'lost bells'
  | 'neighbours'
  | 'readers'
  | 'receivers'
  | 'remote'
  | 'renewal';

/**
 * A test of a few seconds that shows one kind of defect. It runs on processes with all roles, and leaves them running.
 */
export interface Scenario {
  readonly name: ScenarioName;
  /** True when the scenario stops the queue or writes to it, and so needs a separate Redis. */
  readonly needsRedis?: boolean;
  /** True when the scenario needs two processes; other scenarios may also have two. */
  readonly needsTwo?: boolean;
  readonly play: (stage: Stage) => Promise<void>;
}

export interface Stage {
  readonly scene: Scene;
  /** Two processes; the same process twice when there is only one. */
  readonly a: Slot;
  readonly b: Slot;
  readonly redis?: { kill(): Promise<void>; up(): Promise<void>; readonly url: string };
}

let number = 0;

/** Returns a text that identifies one message. */
export function words(more = ''): string {
  return `scene ${++number} ${more}the lazy dog`;
}

/** Returns the numbers from 0 to count - 1. */
export function times(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
