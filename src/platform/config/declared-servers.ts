import { z } from 'zod';
import { trimEnd } from '../../kernel/text.js';
import { secretVariable, type Variables } from './variable.js';

const text = z.string();
const texts = z.array(text);
const textRecord = z.record(text, text);

/**
 * Members of a declared MCP server: those that MCP clients share, and the gateway's own. `${NAME}` stands for a
 * variable.
 */
export const serverMembers = {
  command: text.optional(),
  args: texts.optional(),
  env: textRecord.optional(),
  cwd: text.optional(),
  url: text.optional(),
  headers: textRecord.optional(),
  type: text.optional(),
  transport: text.optional(),
  name: text.optional(),
  timeoutMs: z.number().optional(),
  autoReconnect: z.boolean().optional(),
  toolAllowList: texts.optional(),
  resourceAllowList: texts.optional(),
  userCredentials: text.optional(),
  userHeaders: texts.optional(),
  callsPerMinute: z.number().optional(),
  toolChanges: text.optional(),
  era: text.optional(),
  roots: z.array(z.strictObject({ uri: text, name: text.optional() })).optional(),
  disabled: z.boolean().optional(),
};
type Written = z.output<z.ZodObject<typeof serverMembers>>;

/** `mcpServers` of `rialto.config.json`, by name. */
export const mcpServers = z.record(text, z.strictObject(serverMembers));

/** An MCP server that the operator declared. Only its shape is checked here; its values are checked as in the API. */
export interface DeclaredServer extends Omit<Written, 'type' | 'disabled'> {
  readonly id: string;
  readonly name: string;
  /** True when it is declared in `mcp.config.json`. The tools of such a server are skills as well (AN-97). */
  readonly isAgent: boolean;
}

/**
 * Merges the servers of both files; their ids are made from their names. These are problems: a variable that is not
 * set, two names with the same id, and a secret written directly into `rialto.config.json`.
 */
export function declaredServers(
  gatewayServers: z.output<typeof mcpServers>,
  clientServers: z.output<typeof mcpServers>,
  env: Variables,
  problems: string[],
): DeclaredServer[] {
  for (const [name, server] of Object.entries(gatewayServers))
    for (const [label] of plainSecrets(server))
      problems.push(
        `mcpServers.${name}: ${label} holds a secret: use a variable instead, such as \${${variableFor(label)}}`,
      );
  const servers = new Map<string, DeclaredServer>();
  const all = [gatewayServers, clientServers].flatMap((file) =>
    Object.entries(file).map(([name, server]) => ({ name, server, isAgent: file === clientServers })),
  );
  for (const { name, server: written, isAgent } of all) {
    const { type, disabled, ...server } = written;
    if (disabled) continue;
    const id = idOf(name);
    if (servers.has(id)) problems.push(`two MCP servers have the id "${id}": rename one of them`);
    const filled = filledIn(server, (variable, otherwise) => {
      const value = secretVariable(env, variable, problems) ?? otherwise;
      if (value === undefined) problems.push(`${variable} is named by the MCP server "${name}" and is not set`);
      return value ?? '';
    });
    if (isAgent)
      for (const placeholder of editorPlaceholders(server))
        problems.push(
          `${placeholder} of the MCP server "${name}" can only be filled in by an editor: ` +
            `use a variable instead, such as \${${variableFor(placeholder)}}`,
        );
    servers.set(id, { name, isAgent, ...filled, ...(type !== undefined && { transport: type }), id });
  }
  return [...servers.values()];
}

/**
 * Converts a name to an id: lower case, with one dash for every sequence of characters that an id may not contain.
 */
function idOf(name: string): string {
  const dashed = name
    .toLowerCase()
    .replace(/[^a-z0-9_]+|__+/g, '-')
    .replace(/^[-_]+/, '');
  return trimEnd(dashed.slice(0, 32), '-_');
}

/** Replaces `${NAME}`, `${env:NAME}` and `${NAME:-otherwise}` in all strings of a value. */
function filledIn<Value>(value: Value, valueOf: (variable: string, otherwise?: string) => string): Value {
  if (typeof value === 'string')
    return value.replace(
      /\$\{(?:env:)?([A-Za-z_]\w*)(?::-((?:(?!\$\{)[^}])*))?\}/g,
      (_, name: string, otherwise?: string) => valueOf(name, otherwise),
    ) as Value;
  if (Array.isArray(value)) return value.map((item: unknown) => filledIn(item, valueOf)) as Value;
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, filledIn(item, valueOf)])) as Value;
}

/** Placeholders that an editor fills in, by asking the user or from its workspace. A gateway can do neither. */
function editorPlaceholders(value: unknown): string[] {
  if (typeof value === 'string') return value.match(/\$\{(?:input|config|command|workspaceFolder):[^{}]*\}/g) ?? [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(editorPlaceholders) : [];
}

function plainSecrets({ env = {}, headers = {} }: Written): [string, string][] {
  return Object.entries({ ...env, ...headers }).filter(
    ([name, value]) => /authorization|cookie|token|secret|passw|api.?key/i.test(name) && !value.includes('${'),
  );
}

function variableFor(label: string): string {
  return trimEnd(
    label
      .slice(label.indexOf(':') + 1)
      .toUpperCase()
      .replace(/\W+/g, '_'),
    '_',
  );
}
