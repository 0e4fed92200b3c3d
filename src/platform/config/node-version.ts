/**
 * The first supported minor version of each supported major version of Node. `engines` in package.json must match.
 */
const supported: ReadonlyMap<number, number> = new Map([
  [20, 19],
  [22, 12],
  [24, 0],
  [26, 0],
]);

/**
 * Describes a version of Node that is not supported in one line, and says whether Rialto can run on it; undefined for
 * a supported one.
 */
export function nodeProblem(version: string): { readonly line: string; readonly isFatal: boolean } | undefined {
  const [major = 0, minor = 0] = version.replace(/^v/, '').split('.').map(Number);
  const firstMinor = supported.get(major);
  if (firstMinor !== undefined && minor >= firstMinor) return undefined;
  // Older versions cannot load ES modules with `require`, which dependencies do.
  const isFatal = firstMinor !== undefined || major < 23;
  const end = isFatal ? 'Install one of these.' : 'It may work, but is not tested.';
  return { isFatal, line: `Rialto supports Node 20.19+, 22.12+, 24 and 26; this is ${version}. ${end}` };
}
