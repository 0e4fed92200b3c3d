import { z } from 'zod';
import { trimEnd } from '../../kernel/text.js';
import { secretVariable, type Variables } from './variable.js';

const text = z.string();
const texts = z.array(text);
const words = z.record(text, text);

/** An MCP server as it is written down: the members that MCP clients share, and ours. `${NAME}` stands for a variable. */
export const serverMembers = {
  command: text.optional(),
  args: texts.optional(),
  env: words.optional(),
  cwd: text.optional(),
  url: text.optional(),
  headers: words.optional(),
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

/** `mcpServers` of `rialto.config.json`, by their names. */
export const mcpServers = z.record(text, z.strictObject(serverMembers));

/** An MCP server that the operator has written down. Its shape alone: its values are held to what the API takes. */
export interface DeclaredServer extends Omit<Written, 'type' | 'disabled'> {
  readonly id: string;
  readonly name: string;
  /** It is in `mcp.config.json`, whose tools are skills as well (AN-97). */
  readonly isAgent: boolean;
}

/**
 * The servers of both files, by ids made of their names. A variable that is not set is a problem, so are two names of one id, and in
 * `rialto.config.json` a secret that stands there itself.
 */
export function declaredServers(
  ours: z.output<typeof mcpServers>,
  usual: z.output<typeof mcpServers>,
  env: Variables,
  problems: string[],
): DeclaredServer[] {
  for (const [name, server] of Object.entries(ours))
    for (const [word] of openSecrets(server))
      problems.push(
        `mcpServers.${name}: ${word} holds a secret: name a variable in its place, such as \${${variableFor(word)}}`,
      );
  const servers = new Map<string, DeclaredServer>();
  const all = [ours, usual].flatMap((file) =>
    Object.entries(file).map(([name, server]) => ({ name, server, isAgent: file === usual })),
  );
  for (const { name, server: written, isAgent } of all) {
    const { type, disabled, ...server } = written;
    if (disabled) continue;
    const id = idOf(name);
    if (servers.has(id)) problems.push(`two MCP servers are declared as "${id}"`);
    const filled = filledIn(server, (variable, otherwise) => {
      const value = secretVariable(env, variable, problems) ?? otherwise;
      if (value === undefined) problems.push(`${variable} is named by the MCP server "${name}" and is not set`);
      return value ?? '';
    });
    if (isAgent)
      for (const placeholder of askedOfPersons(server))
        problems.push(
          `${placeholder} of the MCP server "${name}" is filled in by its editor alone: name a variable in its place, such as \${${variableFor(placeholder)}}`,
        );
    servers.set(id, { name, isAgent, ...filled, ...(type !== undefined && { transport: type }), id });
  }
  return [...servers.values()];
}

/** Lower case, whatever else may not stand in an id as one dash. */
function idOf(name: string): string {
  const dashed = name
    .toLowerCase()
    .replace(/[^a-z0-9_]+|__+/g, '-')
    .replace(/^[-_]+/, '');
  return trimEnd(dashed.slice(0, 32), '-_');
}

/** `${NAME}`, `${env:NAME}` and `${NAME:-otherwise}` in each of its texts. */
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

/** Placeholders that an editor fills in, by asking or from its workspace: a gateway has neither. */
function askedOfPersons(value: unknown): string[] {
  if (typeof value === 'string') return value.match(/\$\{(?:input|config|command|workspaceFolder):[^{}]*\}/g) ?? [];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(askedOfPersons) : [];
}

function openSecrets({ env = {}, headers = {} }: Written): [string, string][] {
  return Object.entries({ ...env, ...headers }).filter(
    ([name, value]) => /authorization|cookie|token|secret|passw|api.?key/i.test(name) && !value.includes('${'),
  );
}

function variableFor(word: string): string {
  return trimEnd(
    word
      .slice(word.indexOf(':') + 1)
      .toUpperCase()
      .replace(/\W+/g, '_'),
    '_',
  );
}
