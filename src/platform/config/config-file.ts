import { existsSync, readFileSync } from 'node:fs';
import { z } from 'zod';

/** The name of an environment variable; a secret written here by mistake is refused without being repeated. */
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

/** `rialto.config.json`: what exists by declaration, in the default org. Secrets are named by variable, never written here. */
export const configFileSchema = z.strictObject({
  $schema: z.string().optional(),
  apiKeyEnv: variable.optional(),
  agents: z
    .array(
      z.strictObject({
        url: z.url(),
        slug: z.string().optional(),
        trustLevel: z.enum(['untrusted', 'standard', 'trusted']).optional(),
        timeoutMs: z.number().int().positive().optional(),
        credential: credential.optional(),
      }),
    )
    .default([]),
  policies: z.array(z.strictObject({ name: z.string(), text: z.string() })).default([]),
});

type Declared = z.output<typeof configFileSchema>;
type DeclaredCredential = z.output<typeof credential>;

/** A credential with its secret read from the variable that the file names. */
export type ResolvedCredential =
  | { type: 'bearer'; token: string }
  | { type: 'apiKey'; header: string; value: string }
  | { type: 'oauth2'; tokenUrl: string; clientId: string; clientSecret: string; scope?: string };

export interface ConfigFile extends Omit<Declared, 'agents'> {
  agents: (Omit<Declared['agents'][number], 'credential'> & { credential?: ResolvedCredential })[];
}

/** Puts the secrets in the places of their names; a variable that is not set is a problem. */
export function resolveSecrets(
  file: Declared,
  env: Record<string, string | undefined>,
  problems: string[],
): ConfigFile {
  const read = (name: string): string => {
    if (!env[name]) problems.push(`${name} is named by the configuration file and is not set`);
    return env[name] ?? '';
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
  return {
    ...file,
    agents: file.agents.map(({ credential: declared, ...agent }) => ({
      ...agent,
      ...(declared && { credential: resolve(declared) }),
    })),
  };
}

/** Reads the declared file; a default name may be absent, a named one may not. Problems are added to the list. */
export function readConfigFile(named: string | undefined, problems: string[]): Declared {
  const file = named ?? 'rialto.config.json';
  if (!existsSync(file)) {
    if (named) problems.push(`RIALTO_CONFIG_FILE names ${file}, which does not exist`);
    return configFileSchema.parse({});
  }
  try {
    const parsed = configFileSchema.safeParse(JSON.parse(readFileSync(file, 'utf8')));
    if (parsed.success) return parsed.data;
    problems.push(
      ...parsed.error.issues.map((issue) => `${file}: ${issue.path.join('.') || 'the file'}: ${issue.message}`),
    );
  } catch (error) {
    problems.push(`${file} cannot be read as JSON: ${reasonOf(error as Error)}`);
  }
  return configFileSchema.parse({});
}

/** A parser quotes the text around an error, and that may be a secret: only the place is told. */
function reasonOf({ name, message }: Error): string {
  if (name !== 'SyntaxError') return message;
  return /at position \d+(?: \(line \d+ column \d+\))?/.exec(message)?.[0] ?? 'it is not JSON';
}
