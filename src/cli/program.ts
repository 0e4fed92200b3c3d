import type { Command } from 'commander';
import { versionText } from '../platform/telemetry/version.js';
import type { AuditOptions } from './audit.js';
import { clients, connect, type ConnectOptions } from './connect.js';
import { showConfig } from './config.js';
import { CommandError, type Env } from './io.js';
import type { KeyOptions } from './e2ee.js';
import type { RotateOptions } from './keys.js';
import { StrictCommand } from './library-internals/strict-command.js';
import type { DoctorOptions } from './doctor.js';
import { initSecrets, type SecretsOptions } from './secrets.js';
import type { TokenOptions } from './token.js';

/** Builds the `rialto` command. Each command loads its heavy modules itself, so the others start fast. */
export function createProgram(env: Env): Command {
  const program = new StrictCommand('rialto')
    .description('Operates a Rialto deployment; settings come from the environment, as for the gateway.')
    .version(versionText())
    // A fixed width gives the same text on a terminal and in a file.
    .configureOutput({
      getOutHelpWidth: () => 100,
      getErrHelpWidth: () => 100,
      outputError: (text, write) => write(text.replace(/^error: /, 'rialto: ').replace('\n(', ' (')),
    });
  addDatabase(program, env);
  addAccess(program, env);
  addAudit(program, env);
  addHelp(program, env);
  return program;
}

function addDatabase(program: Command, env: Env): void {
  const db = program.command('db').description('the schema; needs only DATABASE_URL');
  db.command('migrate')
    .description('bring the database to this version')
    .action(async () => (await import('./db.js')).migrate(env));
  db.command('wait')
    .description('wait until the database answers and its schema is current')
    .option('--timeout <seconds>', 'how long to wait', '300')
    .action(async ({ timeout }: { timeout: string }) => (await import('./db.js')).wait(env, millisecondsOf(timeout)));
}

function addAccess(program: Command, env: Env): void {
  program
    .command('token')
    .description('print only a token of a member; in development a missing org or member is created')
    .requiredOption('--org <slug>', 'org of the token')
    .requiredOption('--sub <name>', 'subject of the token')
    .option('--role <role>', 'viewer, member or admin; default for a new member: member')
    .option('--ttl <time>', 'lifetime, at most 1h', '15m')
    .option('--create', 'create org and member, or change the role, also in production')
    .action(async (options: TokenOptions) => (await import('./token.js')).token(env, options));
  const keys = program
    .command('keys')
    .description('secrets of orgs, the key that signs cards, the key that seals secrets, and keys of agents');
  addEncryptionKeys(keys);
  keys
    .command('rotate')
    .description('create a new secret for the tokens of an org and print it once, or a new signing key')
    .option('--org <slug>', 'org that gets a new secret')
    .option('--signing', 'the key of the deployment that signs cards and checkpoints')
    .option('--encryption', 'seal stored secrets with RIALTO_ENCRYPTION_KEY instead of RIALTO_ENCRYPTION_KEY_OTHER')
    .option('--grace <seconds>', 'how long the previous one is accepted', '3600')
    .action(async (options: RotateOptions) => (await import('./keys.js')).rotateKeys(env, options));
  const policy = program.command('policy').description('recover when a policy locks its admins out');
  policy
    .command('list')
    .description('list the policies of an org')
    .requiredOption('--org <slug>', 'org of the policies')
    .action(async (options: { org: string }) => (await import('./policy.js')).listPolicies(env, options));
  policy
    .command('disable')
    .description('delete a policy and print its text')
    .requiredOption('--org <slug>', 'org of the policy')
    .requiredOption('--name <name>', 'name of the policy')
    .action(async (options: { org: string; name: string }) =>
      (await import('./policy.js')).disablePolicy(env, options),
    );
}

function addAudit(program: Command, env: Env): void {
  program
    .command('audit')
    .description('the record of every act')
    .command('verify')
    .description('recompute the chains of the audit; exit code 2 when one was changed, 1 when that cannot be decided')
    .argument('[file]', 'an export of GET /api/audit/export, verified without database and settings')
    .option('--org <slug>', 'one org, by its slug or id, instead of all')
    .option(
      '--against <file>',
      'compare with the checkpoints that an anchor stored, as JSON lines; - is standard input',
    )
    .option(
      '--jwks <file>',
      'trust the public keys of this JWKS: beside those of the database, in place of those of an export',
    )
    .option(
      '--tsa-ca <file>',
      'certificates (PEM) of the time-stamping authorities that are trusted; without it, any authority is accepted',
    )
    .option('--json', 'for programs')
    .action(async (file: string | undefined, options: AuditOptions) =>
      (await import('./audit.js')).verifyAudit(env, file, options),
    );
}

function addEncryptionKeys(keys: Command): void {
  const e2ee = keys.command('e2ee').description('keys of one agent or client for end-to-end encryption');
  const file = ['--file <file>', 'file with the private keys'] as const;
  const days = ['--days <days>', 'days until the new keys expire; default: they do not'] as const;
  e2ee
    .command('new')
    .description('create keys in a new file and print the public ones')
    .requiredOption(...file)
    .option(...days)
    .action(async (options: KeyOptions) => (await import('./e2ee.js')).newEncryptionKeys(options));
  e2ee
    .command('rotate')
    .description('add new keys to a file, endorsed by the old ones, and print all public keys')
    .requiredOption(...file)
    .option(...days)
    .action(async (options: KeyOptions) => (await import('./e2ee.js')).rotateEncryptionKeys(options));
  e2ee
    .command('show')
    .description('print the public keys of a file, as they are published')
    .requiredOption(...file)
    .action(async (options: KeyOptions) => (await import('./e2ee.js')).showEncryptionKeys(options));
}

function addHelp(program: Command, env: Env): void {
  program
    .command('doctor')
    .description('check everything that a gateway needs; exit code 1 when a check fails')
    .option('--url <url>', 'gateway to check; default: the one on this machine')
    .option('--json', 'for programs')
    .action(async (options: DoctorOptions) => (await import('./doctor.js')).doctor(env, options));
  program
    .command('connect')
    .description('print what to paste into an MCP client')
    .argument('<client>', clients.join(', '))
    .option('--url <url>', 'address of the gateway')
    .option('--token <token>', 'write this token into the snippet instead of reading RIALTO_TOKEN')
    .action((client: string, options: ConnectOptions) => connect(env, client, options));
  program
    .command('secrets')
    .description('secrets of a deployment')
    .command('init')
    .description('print a Kubernetes Secret with new random values')
    .option('--name <name>', 'name of the Secret', 'rialto')
    .option('-n, --namespace <namespace>', 'namespace of the Secret')
    .option('--database-url <url>', 'PostgreSQL')
    .option('--redis-url <url>', 'Redis, when the queues live there')
    .action((options: SecretsOptions) => initSecrets(options));
  program
    .command('config')
    .description('print the effective settings and where they come from; secrets are hidden')
    .option('--json', 'for programs')
    .action((options: { json?: boolean }) => showConfig(env, options));
}

function millisecondsOf(seconds: string): number {
  if (!/^\d{1,6}$/.test(seconds)) throw new CommandError(`--timeout ${seconds}: give whole seconds`);
  return Number(seconds) * 1_000;
}
