import { RialtoError } from '../../kernel/errors.js';
import type { Json, JsonObject } from '../../kernel/json.js';
import { invalidBody } from '../../platform/http/request-checks.js';
import { containsUnstorable } from '../../protocol/jsonrpc.js';
import { RegisterServer } from '../../upstreams/upstream.types.js';
import { invalidMember, optionalObject } from './a2e-call.js';

/** Members of a registration on the wire, with their internal names. */
const members = {
  server_id: 'id',
  name: 'name',
  transport: 'transport',
  cmd: 'command',
  args: 'args',
  cwd: 'cwd',
  env: 'env',
  url: 'url',
  headers: 'headers',
  timeout: 'timeoutMs',
  auto_reconnect: 'autoReconnect',
  tool_allow_list: 'toolAllowList',
  resource_allow_list: 'resourceAllowList',
  roots: 'roots',
} as const;

const timeoutRule = 'must be a number of seconds from 0.1 to 3600';
const wireNames = new Map<string, string>(Object.entries(members).map(([wire, inner]) => [inner, wire]));

/**
 * Reads the registration from a payload (AE-16…AE-23). Its members are at the top level or in a `config`. `cmd` is a
 * text, or a list that begins with the program. `timeout` is in seconds. Null and empty members count as absent.
 * Throws `invalid_params`.
 */
export function registrationOf(payload: JsonObject): RegisterServer {
  if (containsUnstorable(payload))
    throw new RialtoError('invalid_params', { message: 'text must not contain NUL characters or lone surrogates' });
  const given: JsonObject = { ...optionalObject(payload, 'config'), ...payload };
  const known = Object.entries(members).flatMap(([wire, inner]) => {
    const value = given[wire];
    return value === undefined || isEmpty(value) ? [] : [[inner, value] as const];
  });
  const parsed = RegisterServer.safeParse(normalized(Object.fromEntries(known)));
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message, ...issue }) => {
    return { ...issue, path: wirePath(path), message: path[0] === 'timeoutMs' ? timeoutRule : message };
  });
  throw invalidBody(issues);
}

function normalized({ command, args, transport, timeoutMs, ...others }: JsonObject): JsonObject {
  if (args !== undefined && !Array.isArray(args)) throw invalidMember('args', 'must be a list');
  const [program, ...first] = Array.isArray(command) ? command : command === undefined ? [] : [command];
  const all = [...first, ...(args ?? [])];
  if (timeoutMs !== undefined && typeof timeoutMs !== 'number') throw invalidMember('timeout', timeoutRule);
  return {
    ...others,
    ...(program !== undefined && { command: program }),
    ...(all.length > 0 && { args: all }),
    ...(transport !== undefined && { transport: typeof transport === 'string' ? transport.toLowerCase() : transport }),
    ...(timeoutMs !== undefined && { timeoutMs: Math.round(timeoutMs * 1_000) }),
  };
}

/** Clients in languages with default values send all members, so empty values mean absent. */
function isEmpty(value: Json): boolean {
  return value === null || value === '' || (typeof value === 'object' && Object.keys(value).length === 0);
}

function wirePath(path: readonly PropertyKey[]): PropertyKey[] {
  return path.map((part, index) => (index === 0 ? (wireNames.get(String(part)) ?? part) : part));
}
