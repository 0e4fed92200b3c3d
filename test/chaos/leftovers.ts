import type { ChildProcess } from 'node:child_process';

const children = new Set<ChildProcess>();

/** Registers a child process, which is killed at the end of the run. */
export function ofTheRun(child: ChildProcess): ChildProcess {
  children.add(child);
  child.once('exit', () => children.delete(child));
  return child;
}

/** Kills all registered processes, also when the run fails. */
export function endAll(): void {
  for (const child of children) child.kill('SIGKILL');
}
