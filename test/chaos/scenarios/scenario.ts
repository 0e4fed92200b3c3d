import type { Scene } from '../scene.js';
import type { Slot } from '../fleet.js';

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

/** A few seconds in which one kind of defect shows. Played on processes that do everything; leaves them running. */
export interface Scenario {
  readonly name: ScenarioName;
  /** Whether it breaks the queue, or writes to it, and so needs a Redis of its own. */
  readonly needsRedis?: boolean;
  /** Whether it takes two processes; others may have two. */
  readonly needsTwo?: boolean;
  readonly play: (stage: Stage) => Promise<void>;
}

export interface Stage {
  readonly scene: Scene;
  /** Two processes, or twice the only one. */
  readonly a: Slot;
  readonly b: Slot;
  readonly redis?: { kill(): Promise<void>; up(): Promise<void>; readonly url: string };
}

let number = 0;

/** Words that name one message. */
export function words(more = ''): string {
  return `scene ${++number} ${more}the lazy dog`;
}

/** Numbers from 0, so many. */
export function times(count: number): number[] {
  return Array.from({ length: count }, (_, index) => index);
}
