import type { TaskUpdate } from '../../tasks/executor.port.js';

/**
 * Runs work and yields the updates that it reports, in their order; returns the result of the work, or throws its
 * error.
 */
export async function* whileWorking<Result>(
  work: (tell: (update: TaskUpdate) => void) => Promise<Result>,
): AsyncGenerator<TaskUpdate, Result> {
  const reported: TaskUpdate[] = [];
  let isOver = false;
  let wake = (): void => undefined;
  const tell = (update: TaskUpdate): void => {
    reported.push(update);
    wake();
  };
  const working = work(tell).finally(() => {
    isOver = true;
    wake();
  });
  // A reader that stops early never awaits this promise.
  working.catch(() => undefined);
  for (;;) {
    yield* reported.splice(0);
    if (reported.length > 0) continue;
    if (isOver) return await working;
    await new Promise<void>((resolve) => (wake = resolve));
  }
}
