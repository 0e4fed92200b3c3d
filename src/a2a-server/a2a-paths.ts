import { percentDecoded } from '../kernel/text.js';
import type { HotRoute } from '../platform/http/http.types.js';

/** Path segments that cannot be handles of agents, because other doors use them. */
const reserved: ReadonlySet<string> = new Set(['agents', 'tasks']);

/** Matches one path, with or without a slash at its end. */
export function exactPath(path: string): HotRoute['match'] {
  return (given) => (given === path || (given.length === path.length + 1 && given === `${path}/`) ? {} : undefined);
}

/** Matches a prefix and one more segment: the decoded name of an agent. No match when the segment cannot be decoded. */
export function agentPath(prefix: string): HotRoute['match'] {
  return (path) => {
    const found = splitAgentPath(prefix, path);
    return found && (found.rest === '' || found.rest === '/') ? { name: found.name } : undefined;
  };
}

/** Splits a path after the prefix into the decoded name of an agent and the rest. */
export function splitAgentPath(prefix: string, path: string): { name: string; rest: string } | undefined {
  if (!path.startsWith(prefix)) return undefined;
  const end = path.indexOf('/', prefix.length);
  const segment = end < 0 ? path.slice(prefix.length) : path.slice(prefix.length, end);
  if (segment === '' || (prefix === '/a2a/' && reserved.has(segment))) return undefined;
  const name = percentDecoded(segment);
  return name === undefined ? undefined : { name, rest: end < 0 ? '' : path.slice(end) };
}
