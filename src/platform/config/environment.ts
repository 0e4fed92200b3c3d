/** The environment of this process; every other place gets it as an argument. */
export function environmentOfProcess(): Record<string, string | undefined> {
  return process.env;
}
