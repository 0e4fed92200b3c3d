import { z } from 'zod';
import { mcpServers, serverMembers } from './declared-servers.js';
import { readDeclaredFile } from './json-file.js';

type Servers = z.output<typeof mcpServers>;
type Entry = z.output<typeof clientEntry>;

/** Programs get numbers and booleans as strings. Some clients write null to remove a variable. */
const scalar = z.union([z.string(), z.number(), z.boolean()]).transform(String);
const scalarRecord = z
  .record(z.string(), scalar.nullable())
  .transform((given) =>
    Object.fromEntries(Object.entries(given).flatMap(([name, value]) => (value === null ? [] : [[name, value]]))),
  );

/** One server entry as MCP clients write it. Members that only the client uses are ignored. */
const clientEntry = z.object({
  ...serverMembers,
  args: z.array(scalar).optional(),
  env: scalarRecord.optional(),
  headers: scalarRecord.optional(),
  enabled: z.boolean().optional(),
  timeout: z.number().optional(),
  httpUrl: z.string().optional(),
  serverUrl: z.string().optional(),
  envFile: z.never({ error: 'is not supported: list its variables in env' }).optional(),
});
const clientFile = z.record(z.string(), clientEntry, {
  error: 'must be an object with each server under its name',
});

/**
 * Member names under which clients keep their servers, the most common first: VS Code uses `servers` (in its settings
 * `mcp.servers`), Zed `context_servers`.
 */
const places = [['mcpServers'], ['servers'], ['mcp', 'servers'], ['context_servers']] as const;
/** A `timeout` below this value is in seconds, as in Cline and Roo; Claude Code and Gemini use milliseconds. */
const minMilliseconds = 1_000;

/**
 * Reads the servers of `mcp.config.json`. The default file may be absent, a named one must exist. Problems are added
 * to the list.
 */
export function readMcpConfig(named: string | undefined, problems: string[]): Servers {
  const read = readDeclaredFile(
    named,
    { defaultName: 'mcp.config.json', variable: 'RIALTO_MCP_CONFIG_FILE' },
    problems,
  );
  if (!read) return {};
  const place = places.find((path) => at(read.content, path) !== undefined) ?? places[0];
  const parsed = clientFile.safeParse(at(read.content, place));
  if (!parsed.success) {
    for (const { path, message } of parsed.error.issues)
      problems.push(`${read.file}: ${[...place, ...path].join('.')}: ${message}`);
    return {};
  }
  return Object.fromEntries(Object.entries(parsed.data).map(([name, entry]) => [name, serverOf(entry)]));
}

/**
 * Converts an entry to the gateway's members. Empty `env`, `args` and `headers`, which forms of clients leave behind,
 * are dropped.
 */
function serverOf({ timeout, httpUrl, serverUrl, enabled, envFile: _, ...entry }: Entry): Servers[string] {
  const { type, args, env, headers, disabled } = entry;
  const timeoutMs = timeout !== undefined && timeout < minMilliseconds ? timeout * 1_000 : timeout;
  return {
    timeoutMs,
    ...entry,
    url: entry.url ?? httpUrl ?? serverUrl,
    type: type === undefined ? undefined : (typesOfClients.get(type) ?? type),
    args: args?.length ? args : undefined,
    env: hasMembers(env) ? env : undefined,
    headers: hasMembers(headers) ? headers : undefined,
    disabled: disabled ?? (enabled === undefined ? undefined : !enabled),
  };
}

const typesOfClients = new Map([
  ['local', 'stdio'],
  ['remote', 'http'],
]);

function hasMembers(value: object | undefined): boolean {
  return value !== undefined && Object.keys(value).length > 0;
}

function at(content: unknown, path: readonly string[]): unknown {
  let value = content;
  for (const name of path)
    value = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined;
  return value;
}
