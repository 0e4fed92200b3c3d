/**
 * Copies an object without its undefined members, in the same order: canonical and encoded objects have no such keys.
 */
export function defined<Members extends object>(members: Members): Members {
  const result: Record<string, unknown> = {};
  const given = members as Record<string, unknown>;
  for (const key in given) if (given[key] !== undefined) result[key] = given[key];
  return result as Members;
}
