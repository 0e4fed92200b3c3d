import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { SignJWT } from 'jose';
import { HttpService } from '../support/stubs/http-service.js';
import { Random } from '../support/fuzz/random.js';
import { Caller } from './caller.js';
import { Fleet, type Slot } from './processes/fleet.js';
import { emptyHistory, type History } from './history.js';
import { startForeignAgent, startReceivers, type Remote } from './remotes.js';
import { Rowkeeper } from './rows.js';

const secret = 'kq3-Vt9fB2mZ7xR5wN8pL4sD6gH1jC0yQe';
export const canaryOfBeta = 'canary-of-beta-5d1c';
/** The token in the settings of receivers. Only one header of outgoing posts may contain it. */
const receiverToken = 'canary-token-of-a-receiver';

export interface SceneOptions {
  readonly folder: string;
  readonly seed: number;
  readonly databaseUrl?: string;
  readonly redisUrl?: string;
  readonly roles: readonly Slot['role'][];
  readonly env?: Record<string, string>;
  /** The program of every process; by default that of the build. */
  readonly main?: string;
}

/** A deployment with its callers and foreign servers, and the history of their observations. */
export interface Scene {
  readonly history: History;
  readonly random: Random;
  readonly fleet: Fleet;
  readonly rows: Rowkeeper;
  /** Callers of the orgs `default` and `beta`. */
  readonly callers: { readonly alpha: Caller; readonly beta: Caller };
  readonly foreign: Remote;
  readonly receivers: Remote;
  readonly redis?: { readonly url: string; readonly prefix: string };
  pushTo(path: string): string;
  close(): Promise<void>;
}

export async function openScene(options: SceneOptions): Promise<Scene> {
  const { folder, seed, databaseUrl, redisUrl, roles } = options;
  const history = emptyHistory();
  const random = new Random(seed);
  const [foreign, receivers, service] = await Promise.all([
    startForeignAgent(history),
    startReceivers(history, random),
    HttpService.start(),
  ]);
  const fleet = await Fleet.make(folder, roles, {
    A2A_SECRET: secret,
    RIALTO_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
    A2A_CONTINUATION_POLL_MS: '400',
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...(redisUrl !== undefined && { REDIS_URL: redisUrl }),
    ...options.env,
  });
  for (const slot of fleet.slots) slot.launch = { main: options.main, env: { RIALTO_PUBLIC_URL: fleet.slots[0]!.url } };
  await fleet.start();
  const rows = new Rowkeeper(databaseUrl ?? (await embeddedUrl(join(folder, 'data'))));
  await rows.watch();
  const tokenFile = join(folder, 'data', 'token');
  const admin = existsSync(tokenFile) ? readFileSync(tokenFile, 'utf8').trim() : '';
  const callerOf = (org: string, token: string): Caller => new Caller(org, token, () => fleet.doors, history, random);
  const operator = callerOf('default', admin);
  await createAgents(operator, fleet.slots[0]!, foreign, service);
  const beta = callerOf('beta', await betaToken(operator, fleet.slots[0]!));
  await createBetaAgent(beta, fleet.slots[0]!);
  history.texts.length = 0; // the operator receives the secrets of agents, once
  history.canaries.push({ org: 'beta', text: canaryOfBeta }, { org: 'none', text: receiverToken });
  const close = async (): Promise<void> => {
    await fleet.stop();
    await Promise.all([rows.close(), foreign.close(), receivers.close(), service.close()]);
  };
  return {
    history,
    random,
    fleet,
    rows,
    callers: { alpha: operator, beta },
    foreign,
    receivers,
    ...(redisUrl !== undefined && { redis: { url: redisUrl, prefix: options.env?.RIALTO_QUEUE_PREFIX ?? 'rialto' } }),
    pushTo: (path) => `${receivers.url}/${path}`,
    close,
  };
}

async function createAgents(operator: Caller, slot: Slot, foreign: Remote, service: HttpService): Promise<void> {
  const remote = await created(operator, slot, '/api/a2a/agents', {
    url: foreign.url,
    slug: 'far_away',
    timeoutMs: 30_000,
  });
  const agents = {
    echo: { kind: 'echo' },
    slow: { kind: 'echo', delayMs: 1_200, chunks: 6 },
    steps: { kind: 'echo', delayMs: 3_000, chunks: 6 },
    strides: { kind: 'echo', delayMs: 6_000, chunks: 3 },
    long: { kind: 'echo', delayMs: 6_000, chunks: 12 },
    longest: { kind: 'echo', delayMs: 7_500 },
    asks: { kind: 'echo', ask: 'Which colour?' },
    box: { kind: 'mailbox' },
    http: { kind: 'http', url: service.url },
    remote: { kind: 'remote', agentId: remote.id },
    forbidden: { kind: 'echo' },
    erring: { kind: 'echo' },
  };
  for (const [name, executor] of Object.entries(agents))
    await created(operator, slot, '/api/a2a/published', { name, description: name, executor, a2a_enabled: true });
  const submit = (agent: string): string =>
    `forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"${agent}")`;
  // The second policy cannot be evaluated: its sum overflows.
  const text = `${submit('forbidden')}; ${submit('erring')} when { 9223372036854775807 + context.depth + 1 > 0 };`;
  await created(operator, slot, '/api/policies', { name: 'forbidden', text });
}

async function createBetaAgent(beta: Caller, slot: Slot): Promise<void> {
  const echo = { name: 'echo', description: 'echo', executor: { kind: 'echo' }, a2a_enabled: true };
  await created(beta, slot, '/api/a2a/published', echo);
}

async function betaToken(operator: Caller, slot: Slot): Promise<string> {
  await created(operator, slot, '/api/orgs', { slug: 'beta', name: 'Beta' });
  await created(operator, slot, '/api/orgs/beta/members', { sub: 'bea', role: 'admin' });
  const token = await new SignJWT({ org_domain: 'beta' })
    .setProtectedHeader({ alg: 'HS256' })
    .setIssuer('rialto')
    .setAudience('rialto')
    .setSubject('bea')
    .setIssuedAt()
    .setExpirationTime('15m')
    .sign(Buffer.from(secret));
  // A key is valid longer than any token, so longer than any run.
  const caller = new Caller('beta', token, () => [slot], emptyHistory(), new Random(1));
  return (await created(caller, slot, '/api/keys', { name: 'chaos', role: 'admin' })).key as string;
}

async function created(caller: Caller, slot: Slot, path: string, body: unknown): Promise<Record<string, any>> {
  const answer = await caller.call(slot, 'POST', path, body);
  if (answer === undefined || answer.status >= 300) throw new Error(`POST ${path}: ${JSON.stringify(answer)}`);
  return answer.body;
}

/** Returns the current URL of the embedded PostgreSQL of a data folder. */
export async function embeddedUrl(dataDir: string): Promise<string> {
  const { findEmbeddedPostgres } = await import('../../src/platform/database/embedded-postgres.js');
  const url = findEmbeddedPostgres(dataDir);
  if (url === undefined) throw new Error('the embedded PostgreSQL in ${dataDir} does not run');
  return url;
}
