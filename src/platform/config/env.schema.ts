import { z } from 'zod';
import { databaseUrl } from './database-url.js';
import { parseAllowList } from '../http/outbound/address.js';
import { parseTrustProxy } from '../http/server/client-address.js';
import { messageLimits } from './message-limits.js';
import { nearestOf } from './nearest-name.js';
import {
  account,
  flag,
  identityProviders,
  key32,
  list,
  origins,
  port,
  readableBy,
  readableProblem,
  secret,
  setting,
  url,
  whole,
} from './setting-shapes.js';
import { secretVariable } from './variable.js';

const httpUrl = url('http:', 'https:').optional();

/** Every setting of the process. `fallback` is the default in the README table; settings.ts sets derived defaults. */
export const environment = {
  NODE_ENV: setting(
    z.enum(['production', 'development', 'test']).optional(),
    '`production`',
    '`development` or `test` relax what production refuses; `npm start` sets `development`',
  ),
  PORT: setting(port.default(3000), '`3000`', 'port of every door; 0 takes a free one'),
  HOST: setting(z.string().optional(), '`127.0.0.1`, production `0.0.0.0`', 'address to listen on'),
  METRICS_PORT: setting(port.default(9464), '`9464`', 'port of `/metrics`; 0 turns it off'),
  GRPC_PORT: setting(port.optional(), 'off', 'port of the A2A gRPC services, named on cards; 0 takes a free one'),
  RIALTO_PUBLIC_URL: setting(
    httpUrl,
    'the listening address, with `127.0.0.1` for `0.0.0.0`',
    'base URL that cards, webhooks and client snippets name',
  ),
  RIALTO_ROLE: setting(
    z.enum(['all', 'api', 'worker']).default('all'),
    '`all`',
    '`api` serves doors, `worker` runs queues and sweepers, `all` does both',
  ),
  DATABASE_URL: setting(databaseUrl.optional(), 'embedded PostgreSQL', 'PostgreSQL 15 or later'),
  RIALTO_DATABASE_DIRECT_URL: setting(
    databaseUrl.optional(),
    '`DATABASE_URL`',
    'direct address for LISTEN and locks when `DATABASE_URL` is a transaction pooler',
  ),
  REDIS_URL: setting(url('redis:', 'rediss:').optional(), 'queues in PostgreSQL', 'Redis 7 for the queues'),
  RIALTO_QUEUE_PREFIX: setting(
    z
      .string()
      .regex(/^[\w-]{1,40}$/)
      .default('rialto'),
    '`rialto`',
    'prefix of the queue keys in Redis',
  ),
  A2A_SECRET: setting(
    secret.optional(),
    'none',
    'the deployment’s secret for HS256 tokens, at least 32 bytes; without it, and without `apiKeyEnv`, ' +
      'a production gateway starts, but answers 503 at every agent door',
  ),
  RIALTO_A2A_SECRET_ADMINS: setting(
    flag.optional(),
    '`false`; outside production `true`',
    'whether tokens signed with `A2A_SECRET` may act as admins; tokens signed with the secret of an org always may',
  ),
  RIALTO_API_KEY_ENV: setting(
    z
      .string()
      .regex(/^[A-Za-z_]\w*$/)
      .optional(),
    'none',
    'name of the variable that holds a legacy static bearer (`apiKeyEnv`)',
  ),
  RIALTO_ENCRYPTION_KEY: setting(
    key32.optional(),
    'made under the data folder',
    '32 bytes in base64 that seal stored secrets; required in production',
  ),
  RIALTO_ENCRYPTION_KEY_OTHER: setting(
    key32.optional(),
    'none',
    'a second key that only opens stored secrets: the next key before a rotation, the previous one during it',
  ),
  RIALTO_DATA_DIR: setting(
    z.string().min(1).default('.rialto'),
    '`.rialto`',
    'folder of the embedded database, the token and the key',
  ),
  RIALTO_CONFIG_FILE: setting(
    z.string().min(1).optional(),
    '`rialto.config.json` if present',
    'declared agents, MCP servers, policies, orgs and members, reconciled at start',
  ),
  RIALTO_MCP_CONFIG_FILE: setting(
    z.string().min(1).optional(),
    '`mcp.config.json` if present',
    'MCP servers in the form that MCP clients share (`mcpServers`), reconciled at start',
  ),
  RIALTO_AGENTS_DIR: setting(
    z.string().min(1).default('agents'),
    '`agents` if present',
    'folder with one sub-directory for each published agent of the org `default`; changes are picked up',
  ),
  RIALTO_OUTBOUND_ALLOW: setting(
    z
      .string()
      .refine(readableBy(parseAllowList), {
        message: 'must be a list of hosts, CIDRs and origins, separated by commas',
      })
      .optional(),
    '`127.0.0.0/8,::1`, production empty',
    'private hosts, CIDRs or origins that may be called',
  ),
  RIALTO_TRUST_PROXY: setting(
    z
      .string()
      .refine(readableBy(parseTrustProxy), { message: 'must be `true`, a number of hops, or addresses and CIDRs' })
      .optional(),
    'off',
    '`true`, a number of hops, or CIDRs of the proxies that may set the `X-Forwarded-*` headers',
  ),
  RIALTO_MAX_BODY_BYTES: setting(whole(1_024, 64 * 1_048_576).default(1_048_576), '`1048576`', 'largest request body'),
  ...messageLimits,
  RIALTO_RATE_LIMIT_PRINCIPAL: setting(
    whole(1, 1_000_000).default(1_200),
    '`1200`',
    'requests per minute and principal, in each process; ' +
      'bursts of half the limit are allowed, at least 10 if the limit is that high',
  ),
  RIALTO_RATE_LIMIT_ORG: setting(whole(1, 10_000_000).default(6_000), '`6000`', 'the same limit for each org'),
  RIALTO_MAX_NESTED_CALLS: setting(
    whole(1, 100_000).default(50),
    '`50`',
    'nested calls of one caller that may wait at once for one agent that works elsewhere; ' +
      'the limit for tasks that it does not wait for is 20 times higher',
  ),
  RIALTO_RATE_LIMIT_TOOL: setting(
    whole(0, 1_000_000).default(0),
    'none',
    'calls of one tool per minute and principal, over all processes; an MCP server may have its own (`callsPerMinute`)',
  ),
  RIALTO_WEBHOOK_MAX_PER_HOST: setting(
    whole(1, 1_000).default(8),
    '`8`',
    'webhooks that a process posts to one host at the same moment, for all orgs together',
  ),
  RIALTO_WEBHOOK_MAX_PER_ORG: setting(
    whole(1, 1_000).default(32),
    '`32`',
    'webhooks that a process posts for one org at the same moment',
  ),
  RIALTO_TOOL_TIMEOUT_MS: setting(
    whole(100, 3_600_000).default(30_000),
    '`30000`',
    'how long a bridged call may take when neither the agent nor the org sets a time',
  ),
  RIALTO_MCP_TOOL_NAMES: setting(
    z.enum(['portable', 'canonical', 'both']).default('portable'),
    '`portable`',
    'which tool names `tools/list` shows; `tools/call` accepts both',
  ),
  RIALTO_A2A_PROFILE: setting(
    z.enum(['1.0.0', '1.0.1']).default('1.0.1'),
    '`1.0.1`',
    'error table of the A2A doors; `1.0.0` for callers that expect the older codes',
  ),
  RIALTO_A2A_ACCEPT_CLEARTEXT: setting(
    flag.default(true),
    '`true`',
    'whether published agents accept unencrypted messages when they do not set it themselves',
  ),
  RIALTO_JWT_ISSUERS: setting(list.default(['rialto']), '`rialto`', 'accepted `iss` of tokens with our signature'),
  RIALTO_JWT_AUDIENCE: setting(list.default(['rialto']), '`rialto`', 'accepted `aud`'),
  RIALTO_JWKS: setting(
    identityProviders.default([]),
    'none',
    'outside identity providers: `org=issuer|jwks-url`, comma separated; each issuer once',
  ),
  RIALTO_LEGACY_TOKENS: setting(
    flag.default(false),
    '`false`',
    'accept tokens without `iss`, `aud` and `org_domain` (they count for the default org) ' +
      'on the `_agent-native` and `/a2a` doors',
  ),
  RIALTO_DEV_ANONYMOUS: setting(flag.default(false), '`false`', 'development only: loopback callers need no token'),
  RIALTO_ADMIN_PASSWORD: setting(
    z.string().min(12).optional(),
    'none',
    'password of the user `admin` at `/admin/queues`, and in production at `/docs`; ' +
      'the API key of an admin of the org `default` works there too',
  ),
  RIALTO_STDIO_COMMANDS: setting(
    z.enum(['catalogue', 'any']).default('catalogue'),
    '`catalogue`',
    'which programs may be registered as MCP servers: those of `stdioCommands` in the configuration file, or `any`; ' +
      'outside production every program may be registered',
  ),
  RIALTO_STDIO_ISOLATION: setting(
    z.enum(['required', 'preferred']).optional(),
    '`required`; outside production `preferred`',
    '`required`: a program is not started when it could read the memory of the gateway',
  ),
  RIALTO_STDIO_USER: setting(
    account.optional(),
    'the user of the gateway',
    'user and group, as numbers (`65533:65533`), that programs of MCP servers run as; ' +
      'requires that the gateway runs as root',
  ),
  RIALTO_STDIO_PROGRAMS: setting(
    whole(1, 1_000).default(5),
    '`5`',
    'programs that the MCP servers of one org may run at once in one process for all callers, ' +
      'and the same number for single clients; further calls wait',
  ),
  RIALTO_CONFORMANCE_AGENT: setting(
    z.enum(['v1', 'v03', 'nocaps', 'reqext']).optional(),
    'off',
    'publish the conformance agent (`v1`, `v03`, `nocaps`, `reqext`) as the default agent',
  ),
  A2A_QUEUED_LIFETIME_MAX_MS: setting(
    whole(100, 86_400_000).default(180_000),
    '`180000`',
    'how long an accepted task may wait for a worker; then it fails with this reason',
  ),
  A2A_PROCESSING_LIFETIME_MAX_MS: setting(
    whole(100, 604_800_000).default(1_800_000),
    '`1800000`',
    'how long a task may be worked on without a change of its status; then it fails with this reason',
  ),
  A2A_CONTINUATION_MAX_REMOTE_WORK_MS: setting(
    whole(100, 604_800_000).default(600_000),
    '`600000`',
    'how long a remote agent may work on a task that it did not end at once; then the task fails with this reason',
  ),
  A2A_CONTINUATION_MAX_ATTEMPTS: setting(
    whole(1, 1_000).default(6),
    '`6`',
    'how often a worker takes up such a task; each time it polls several times',
  ),
  A2A_CONTINUATION_PRECLAIM_WAIT_MS: setting(
    whole(0, 3_600_000).default(25_000),
    '`25000`',
    'how long the process that sent the message follows the remote task itself, before workers take over',
  ),
  A2A_CONTINUATION_RUN_WAIT_MS: setting(
    whole(0, 3_600_000).default(10_000),
    '`10000`',
    'how long a worker follows a remote task before it releases it',
  ),
  A2A_CONTINUATION_POLL_MS: setting(
    whole(10, 3_600_000).default(2_000),
    '`2000`',
    'time between two polls of the remote task',
  ),
  A2A_CONTINUATION_POLL_TIMEOUT_MS: setting(whole(10, 600_000).default(8_000), '`8000`', 'how long one poll may take'),
  A2A_CONTINUATION_RESCHEDULE_MS: setting(
    whole(10, 3_600_000).default(20_000),
    '`20000`',
    'time until the next worker takes up the task; doubled each time, up to 4 minutes',
  ),
  A2A_CONTINUATION_SEND_TIMEOUT_MS: setting(
    whole(10, 20_000).default(12_000),
    '`12000`',
    'how long the receiver of a conversation thread may take to accept one message',
  ),
  A2A_CONTINUATION_RECEIPT_RETRIES: setting(
    whole(0, 5).default(3),
    '`3`',
    'how often writing the receipt of such a message is tried again',
  ),
  RIALTO_APPROVAL_PAGES: setting(flag.default(true), '`true`', 'serves a page for each approval; off: they answer 501'),
  RIALTO_TASK_RETENTION_DAYS: setting(
    whole(1, 36_500).default(30),
    '`30`',
    'age at which ended calls, tasks, approvals and deliveries are deleted',
  ),
  RIALTO_AUDIT_RETENTION_DAYS: setting(
    whole(1, 36_500).optional(),
    'kept',
    'age at which a sealed prefix of the audit may be deleted',
  ),
  RIALTO_AUDIT_ANCHOR_FILE: setting(
    z.string().optional(),
    'off',
    'file outside the database; every audit checkpoint is appended to it as one JSON line',
  ),
  RIALTO_AUDIT_ANCHOR_URL: setting(httpUrl, 'off', 'external URL; every audit checkpoint is posted to it as JSON'),
  RIALTO_AUDIT_TIMESTAMP_URL: setting(
    httpUrl,
    'off',
    'URL of a time-stamping authority (RFC 3161); it gets the hash of each audit checkpoint and signs its time',
  ),
  RIALTO_MAX_OPEN_TASKS_PER_ORG: setting(
    whole(1, 10_000_000).default(10_000),
    '`10000`',
    'tasks of one org that may be queued, running or deferred at once; more are refused with 429',
  ),
  RIALTO_MAX_OPEN_TASKS: setting(
    whole(1, 100_000_000).default(100_000),
    '`100000`',
    'the same limit for all orgs together; more are refused with 503',
  ),
  RIALTO_CARD_CHANGES: setting(
    z.enum(['accept', 'approve']).optional(),
    '`approve`; outside production `accept`',
    '`approve`: an agent with a changed card is neither listed nor called until an admin approves the change',
  ),
  RIALTO_CARD_SIGNATURES: setting(
    z.enum(['off', 'prefer', 'require']).default('prefer'),
    '`prefer`',
    'signatures of the cards of registered agents; `prefer`: an invalid one is refused, and the first key is pinned; ' +
      '`require`: only verified cards are used; `off`: not checked',
  ),
  RIALTO_CARD_KEYS: setting(
    z.string().min(1).optional(),
    'none',
    'public keys that sign cards: a JWKS, or the name of a file with one; ' +
      '`hosts` of a key limits it to the agents on these hosts. Where a key applies, no other key is trusted',
  ),
  RIALTO_CARD_KEY_ORIGINS: setting(
    list.refine(...origins).default([]),
    'none',
    'more origins that the `jku` of a card may point to; the origin of the card is always allowed',
  ),
  RIALTO_MAX_AGENTS_PER_ORG: setting(
    whole(1, 100_000).default(1_000),
    '`1000`',
    'agents that one org may register, and the same number that it may publish',
  ),
  RIALTO_CARD_REFRESH_SECONDS: setting(
    whole(1, 86_400).default(300),
    '`300`',
    'how often the card of a healthy agent is fetched again',
  ),
  RIALTO_LOG_LEVEL: setting(
    z.enum(['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent']).default('info'),
    '`info`',
    'lowest level that is logged',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: setting(httpUrl, 'off', 'where spans are sent (OTLP over HTTP)'),
} as const;

export type EnvironmentName = keyof typeof environment;
export type Environment = { [Name in EnvironmentName]: z.output<(typeof environment)[Name]['schema']> };

/** Settings with secret values. Each can be given as a file: `A2A_SECRET_FILE`, and so on. */
export const secretSettings = [
  'A2A_SECRET',
  'RIALTO_ENCRYPTION_KEY',
  'RIALTO_ENCRYPTION_KEY_OTHER',
  'RIALTO_ADMIN_PASSWORD',
  'DATABASE_URL',
  'RIALTO_DATABASE_DIRECT_URL',
  'REDIS_URL',
  'RIALTO_AUDIT_ANCHOR_URL',
  'RIALTO_AUDIT_TIMESTAMP_URL',
] as const satisfies EnvironmentName[];

const fileNames: ReadonlySet<string> = new Set(secretSettings.map((name) => `${name}_FILE`));

/** `RIALTO_` names that are not settings: the operator's token, and variables that Kubernetes injects. */
const foreignNames = /^RIALTO_(?:(?:TOKEN|PORT)$|PORT_|.*SERVICE_)/;

/** Reads the environment, with the aliases of other systems. Collects all problems, one line each, without values. */
export function readEnvironment(env: Record<string, string | undefined>): { values: Environment; problems: string[] } {
  const problems: string[] = [];
  const given: Record<string, string | undefined> = {
    ...env,
    RIALTO_OUTBOUND_ALLOW: env.RIALTO_OUTBOUND_ALLOW ?? env.AGENT_NATIVE_A2A_ALLOWED_ORIGINS,
    ...Object.fromEntries(secretSettings.map((name) => [name, secretVariable(env, name, problems)])),
  };
  const values: Record<string, unknown> = {};
  for (const [name, { schema }] of Object.entries(environment)) {
    const raw = given[name];
    const parsed = schema.safeParse(raw === '' ? undefined : raw);
    if (parsed.success) values[name] = parsed.data;
    else problems.push(`${name} ${parsed.error.issues.map(readableProblem).join('; ')}`);
  }
  if (given.A2A_SECRET === '') problems.push('A2A_SECRET is empty; unset it or give at least 32 bytes');
  for (const name of Object.keys(env)) {
    if (name.startsWith('RIALTO_') && !(name in environment) && !fileNames.has(name) && !foreignNames.test(name)) {
      problems.push(`${name} is not a setting; did you mean ${nearestOf(Object.keys(environment), name)}?`);
    }
  }
  return { values: values as Environment, problems };
}
