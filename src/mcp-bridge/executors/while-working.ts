import type { TaskUpdate } from '../../tasks/executor.port.js';

/** Runs work and yields, in their order, the updates that it tells meanwhile; returns what the work comes to, or throws what it throws. */
export async function* whileWorking<Result>(
  work: (tell: (update: TaskUpdate) => void) => Promise<Result>,
): AsyncGenerator<TaskUpdate, Result> {
  const told: TaskUpdate[] = [];
  let isOver = false;
  let wake = (): void => undefined;
  const tell = (update: TaskUpdate): void => {
    told.push(update);
    wake();
  };
  const working = work(tell).finally(() => {
    isOver = true;
    wake();
  });
  // Whoever stops reading never awaits it.
  working.catch(() => undefined);
  for (;;) {
    yield* told.splice(0);
    if (told.length > 0) continue;
    if (isOver) return await working;
    await new Promise<void>((resolve) => (wake = resolve));
  }
}
