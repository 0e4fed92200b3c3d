import type { HotRoute } from '../platform/http/http.types.js';

/** Words that are no handles: they lead to other doors. */
const reserved: ReadonlySet<string> = new Set(['agents', 'tasks']);

/** A path, with or without a slash at its end. */
export function exactPath(path: string): HotRoute['match'] {
  return (given) => (given === path || (given.length === path.length + 1 && given === `${path}/`) ? {} : undefined);
}

/** One segment after a prefix: the name of an agent, decoded. No route for what does not decode. */
export function agentPath(prefix: string): HotRoute['match'] {
  return (path) => {
    const found = splitAgentPath(prefix, path);
    return found && (found.rest === '' || found.rest === '/') ? { name: found.name } : undefined;
  };
}

/** The name of an agent after a prefix, and what follows it. */
export function splitAgentPath(prefix: string, path: string): { name: string; rest: string } | undefined {
  if (!path.startsWith(prefix)) return undefined;
  const end = path.indexOf('/', prefix.length);
  const segment = end < 0 ? path.slice(prefix.length) : path.slice(prefix.length, end);
  if (segment === '' || (prefix === '/a2a/' && reserved.has(segment))) return undefined;
  try {
    return { name: decodeURIComponent(segment), rest: end < 0 ? '' : path.slice(end) };
  } catch {
    return undefined;
  }
}
