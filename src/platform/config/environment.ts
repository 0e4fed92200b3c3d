import { closeSync, openSync, readFileSync, writeSync } from 'node:fs';

/** The environment of this process. All other code gets it as an argument. */
export function environmentOfProcess(): Record<string, string | undefined> {
  return process.env;
}

/**
 * Clears the memory that Linux shows as `/proc/<pid>/environ`. It keeps the variables of the start, also when they
 * are changed later, so a process of the same user could read every secret there. The variables keep their values, in
 * other memory. Does nothing on other systems; where the process may not write to that memory, other processes may
 * not read it. Source: proc_pid_stat(5), fields 50 and 51.
 */
export function hideEnvironment(): void {
  if (process.platform !== 'linux') return;
  try {
    const stat = readFileSync('/proc/self/stat', 'utf8');
    // The second field, the name, may contain spaces and parentheses; the first field after it is the third.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    const [begin, end] = [Number(fields[50 - 3]), Number(fields[51 - 3])];
    if (!Number.isSafeInteger(end) || begin <= 0 || end <= begin) return;
    const memory = openSync('/proc/self/mem', 'r+');
    try {
      // setenv makes a copy, so the C library then no longer points into the old memory.
      for (const [name, value] of Object.entries(process.env)) process.env[name] = value;
      writeSync(memory, Buffer.alloc(end - begin), 0, end - begin, begin);
    } finally {
      closeSync(memory);
    }
  } catch {
    // See above; `ProgramGuard` tests what a program could read.
  }
}
