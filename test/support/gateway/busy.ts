import { Script } from 'node:vm';

/**
 * Runs synchronous work and throws when it takes more than 25 seconds, which means that it hangs. The timeout of a test
 * cannot stop such work, because its timer needs the same thread.
 */
export function endsByItself(work: () => void): void {
  new Script('work()').runInNewContext({ work }, { timeout: 25_000 });
}
