import { z } from 'zod';
import { declaredServers, mcpServers, type DeclaredServer } from './declared-servers.js';
import { readDeclaredFile } from './json-file.js';
import { secretVariable } from './variable.js';

/**
 * The name of an environment variable. A secret written here by mistake is refused, and the message does not repeat
 * it.
 */
const variable = z.string().regex(/^[A-Za-z_]\w*$/, { message: 'must be the name of an environment variable' });
const credential = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('bearer'), tokenEnv: variable }),
  z.strictObject({ type: z.literal('apiKey'), header: z.string(), valueEnv: variable }),
  z.strictObject({
    type: z.literal('oauth2'),
    tokenUrl: z.string(),
    clientId: z.string(),
    clientSecretEnv: variable,
    scope: z.string().optional(),
  }),
]);

/** A registered agent: an outside agent, by its URL. */
const registered = z.strictObject({
  url: z.url(),
  slug: z.string().optional(),
  trustLevel: z.enum(['untrusted', 'standard', 'trusted']).optional(),
  timeoutMs: z.number().int().positive().optional(),
  credential: credential.optional(),
});

const texts = z.array(z.string());
const skill = z.strictObject({
  id: z.string(),
  name: z.string().optional(),
  description: z.string().optional(),
  tags: texts.optional(),
  examples: texts.optional(),
  inputModes: texts.optional(),
  outputModes: texts.optional(),
  inputSchema: z.unknown().optional(),
  public: z.boolean().optional(),
  requiresAuth: z.boolean().optional(),
  isConsequential: z.boolean().optional(),
});
const executor = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('echo'),
    delayMs: z.number().optional(),
    chunks: z.number().optional(),
    ask: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal('remote'), agentId: z.string(), skillId: z.string().optional() }),
  z.strictObject({ kind: z.literal('http'), url: z.string() }),
  z.strictObject({ kind: z.literal('mailbox') }),
  z.strictObject({ kind: z.literal('mcp-tool'), serverId: z.string(), tool: z.string().optional() }),
  z.strictObject({
    kind: z.literal('llm'),
    url: z.string(),
    model: z.string(),
    apiKeyEnv: variable.optional(),
    system: z.string().optional(),
    tools: z.array(z.string()).optional(),
    maxSteps: z.number().optional(),
    maxSeconds: z.number().optional(),
    maxTokens: z.number().optional(),
    temperature: z.number().optional(),
  }),
]);
const extension = z.strictObject({
  uri: z.string(),
  description: z.string().optional(),
  required: z.boolean().optional(),
  params: z.unknown().optional(),
});

/** A published agent, by its name. Only the shape is checked here; the values are checked as in the API (AN-96). */
const published = z.strictObject({
  name: z.string(),
  handle: z.string().optional(),
  description: z.string().optional(),
  skills: z.array(skill).optional(),
  executor: executor.optional(),
  apiKeyEnv: variable.optional(),
  publishToCard: z.boolean().optional(),
  a2a_enabled: z.boolean().optional(),
  a2a_accept_cleartext: z.boolean().optional(),
  streaming: z.boolean().optional(),
  pushNotifications: z.boolean().optional(),
  extendedCard: z.boolean().optional(),
  defaultInputModes: texts.optional(),
  defaultOutputModes: texts.optional(),
  version: z.string().optional(),
  provider: z.strictObject({ organization: z.string(), url: z.string() }).optional(),
  documentationUrl: z.string().optional(),
  iconUrl: z.string().optional(),
  extensions: z.array(extension).optional(),
  protocolVersions: texts.optional(),
  history: z.enum(['context', 'agent']).optional(),
});

const policies = z.array(z.strictObject({ name: z.string(), text: z.string() }));

/** An additional org, or the members of the default org. Only the shape is checked here, as for agents. */
const org = z.strictObject({
  slug: z.string(),
  name: z.string().optional(),
  toolTimeoutMs: z.number().optional(),
  toolNames: z.string().optional(),
  trustTier: z.number().optional(),
  members: z
    .array(
      z.strictObject({
        sub: z.string(),
        role: z.string().optional(),
        groups: texts.optional(),
        active: z.boolean().optional(),
      }),
    )
    .default([]),
  policies: policies.optional(),
});

const optionalLimit = z.number().int().positive().optional();
const limits = z.strictObject({
  memoryMb: optionalLimit,
  processes: optionalLimit,
  files: optionalLimit,
  cpuSeconds: optionalLimit,
  fileMb: optionalLimit,
});
export type StdioLimits = z.output<typeof limits>;
const absolute = z.string().regex(/^\//, { message: 'must be an absolute path' });

/**
 * A program that may be registered as an MCP server. Users register it by its name, and may set the variables listed
 * in `env` only.
 */
const stdioCommand = z.strictObject({
  name: z.string(),
  command: absolute,
  args: texts.default([]),
  env: z.array(variable).default([]),
  cwd: absolute.optional(),
  limits: limits.optional(),
});

/**
 * The schema of `rialto.config.json`: objects that the operator declares, in the default org unless they name
 * another. Secrets are given by the names of variables, never as values.
 */
export const configFileSchema = z.strictObject({
  $schema: z.string().optional(),
  apiKeyEnv: variable.optional(),
  /** The agent that serves `/a2a` and the card of the service while the default org has not chosen one. */
  defaultAgent: z.string().optional(),
  agents: z.array(z.union([registered, published])).default([]),
  policies: policies.default([]),
  orgs: z.array(org).default([]),
  stdioCommands: z.array(stdioCommand).default([]),
  mcpServers: mcpServers.default({}),
});

type Declared = z.output<typeof configFileSchema>;
type DeclaredExecutor = z.output<typeof executor>;
type DeclaredModel = Extract<DeclaredExecutor, { kind: 'llm' }>;
type DeclaredCredential = z.output<typeof credential>;

/** A credential with its secret read from the variable that the file names. */
export type ResolvedCredential =
  | { type: 'bearer'; token: string }
  | { type: 'apiKey'; header: string; value: string }
  | { type: 'oauth2'; tokenUrl: string; clientId: string; clientSecret: string; scope?: string };

export interface ConfigFile extends Omit<Declared, 'agents' | 'mcpServers'> {
  /** Registered agents, by URL. */
  agents: (Omit<z.output<typeof registered>, 'credential'> & { credential?: ResolvedCredential })[];
  /** Published agents, by name. `apiKey` is the value of the variable that `apiKeyEnv` names. */
  published: (Omit<z.output<typeof published>, 'apiKeyEnv' | 'executor'> & {
    apiKey?: string;
    executor?: DeclaredExecutor | (Omit<DeclaredModel, 'apiKeyEnv'> & { apiKey?: string });
  })[];
  /** MCP servers of this file and of `mcp.config.json`. */
  mcpServers: DeclaredServer[];
}

/**
 * Reads a static bearer from the named variable; undefined when it is not set. A value shorter than 16 bytes is a
 * problem too.
 */
export function staticBearer(
  name: string,
  env: Record<string, string | undefined>,
  problems: string[],
): string | undefined {
  const value = secretVariable(env, name, problems);
  if (!value) problems.push(`${name} is named by apiKeyEnv and is not set`);
  else if (Buffer.byteLength(value) < 16) problems.push(`${name} is named by apiKeyEnv and is shorter than 16 bytes`);
  return value;
}

/**
 * Replaces the names of variables by their secrets. A variable that is not set is a problem.
 * @param clientServers the servers of `mcp.config.json`.
 */
export function resolveSecrets(
  file: Declared,
  clientServers: Declared['mcpServers'],
  env: Record<string, string | undefined>,
  problems: string[],
): ConfigFile {
  const read = (name: string): string => {
    const value = secretVariable(env, name, problems);
    if (!value) problems.push(`${name} is named by the configuration file and is not set`);
    return value ?? '';
  };
  const resolve = (declared: DeclaredCredential): ResolvedCredential => {
    switch (declared.type) {
      case 'bearer':
        return { type: 'bearer', token: read(declared.tokenEnv) };
      case 'apiKey':
        return { type: 'apiKey', header: declared.header, value: read(declared.valueEnv) };
      case 'oauth2': {
        const { clientSecretEnv, ...rest } = declared;
        return { ...rest, clientSecret: read(clientSecretEnv) };
      }
    }
  };
  const keyed = (declared: DeclaredExecutor) => {
    if (declared.kind !== 'llm') return declared;
    const { apiKeyEnv: name, ...model } = declared;
    return { ...model, ...(name !== undefined && { apiKey: read(name) }) };
  };
  return {
    ...file,
    agents: file.agents.flatMap((agent) => {
      if (!('url' in agent)) return [];
      const { credential: declared, ...rest } = agent;
      return [{ ...rest, ...(declared && { credential: resolve(declared) }) }];
    }),
    mcpServers: declaredServers(file.mcpServers, clientServers, env, problems),
    published: file.agents.flatMap((agent) => {
      if ('url' in agent) return [];
      const { apiKeyEnv, executor: declared, ...rest } = agent;
      return [
        {
          ...rest,
          ...(declared && { executor: keyed(declared) }),
          ...(apiKeyEnv !== undefined && { apiKey: staticBearer(apiKeyEnv, env, problems) }),
        },
      ];
    }),
  };
}

/**
 * Reads the configuration file. The default file may be absent, a named one must exist. Problems are added to the
 * list.
 */
export function readConfigFile(named: string | undefined, problems: string[]): Declared {
  const read = readDeclaredFile(named, { defaultName: 'rialto.config.json', variable: 'RIALTO_CONFIG_FILE' }, problems);
  if (!read) return configFileSchema.parse({});
  const parsed = configFileSchema.safeParse(read.content);
  if (parsed.success) return parsed.data;
  problems.push(
    ...parsed.error.issues
      .flatMap((issue) => readableIssues(issue, read.content))
      .map(({ path, message }) => `${read.file}: ${path.join('.') || 'the file'}: ${message}`),
  );
  return configFileSchema.parse({});
}

type Issue = z.core.$ZodIssue;

/**
 * Reports the issues of one kind of agent: an entry of `agents` with a `name` and no `url` is a published agent, else
 * a registered one.
 */
function readableIssues(issue: Issue, content: unknown): Pick<Issue, 'path' | 'message'>[] {
  if (issue.code !== 'invalid_union' || issue.path[0] !== 'agents') return [issue];
  const entry = (content as { agents: unknown[] }).agents[Number(issue.path[1])];
  const isPublished = typeof entry === 'object' && entry !== null && 'name' in entry && !('url' in entry);
  const inner = issue.errors[isPublished ? 1 : 0] ?? [];
  return inner.map(({ path, message }) => ({ path: [...issue.path, ...path], message }));
}
