import { Script } from 'node:vm';

/**
 * Work that never lets go of the thread while it runs; throws when that takes as long as only a hang does. The limit of a test
 * cannot end it: its timer would have to wait as well.
 */
export function endsByItself(work: () => void): void {
  new Script('work()').runInNewContext({ work }, { timeout: 25_000 });
}
