import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** A process of the run, which does not outlive it. */
export function ofTheRun(child: ChildProcess): ChildProcess {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Ends whatever is left, however the run ends. */
export function endAll(): void {
  for (const child of children) child.kill('SIGKILL');
}
