import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/** The environment of this process; every other place gets it as an argument. */
export function environmentOfProcess(): Record<string, string | undefined> {
  return process.env;
}

/**
 * Empties the memory that Linux shows as `/proc/<pid>/environ`, which stays as it was at the start whatever becomes of the variables: a
 * process of the same user reads every secret there. The variables keep their values, in other memory. Does nothing elsewhere, and where
 * the process may not write there, nobody else may read it. Source: proc_pid_stat(5), fields 50 and 51.
 */
export function hideEnvironment(): void {
  if (process.platform !== 'linux') return;
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // The second field, the name, may hold spaces and parentheses; the first after it is the third.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [begin, end] = [Number(fields[50 - 3]), Number(fields[51 - 3])];
    if (!Number.isSafeInteger(end) || begin <= 0 || end <= begin) return;
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      // setenv makes a copy; nothing of the C library points into the old memory then.
      for (const [name, value] of Object.entries(process.env)) process.env[name] = value;
      writeSync(memory, Buffer.alloc(end - begin), 0, end - begin, begin);
    } finally {
      closeSync(memory);
    }
  } catch {
    // See above; `ProgramGuard` tries what a program could read.
  }
}
