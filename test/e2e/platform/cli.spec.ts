import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { Client } from 'pg';
import { publish } from '../../support/clients/a2a.js';
import { asAdmin, runPrefix } from '../../support/gateway/admin.js';
import { rialto } from '../../support/gateway/cli.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';

// The key of all processes here, in production and outside it: they share a database, and each opens values that
// another sealed.
const encryptionKey = Buffer.from('0123456789abcdef0123456789abcdef').toString('base64');
const wrongKey = Buffer.from('fedcba9876543210fedcba9876543210').toString('base64');

describe('rialto, next to a running gateway', () => {
  let gateway: TestGateway;
  let env: Record<string, string>;
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_ENCRYPTION_KEY: encryptionKey });
    env = {
      RIALTO_ENCRYPTION_KEY: encryptionKey,
      DATABASE_URL: gateway.database.url,
      A2A_SECRET: testSecret,
      RIALTO_DATA_DIR: gateway.gateway.settings.RIALTO_DATA_DIR,
    };
  });
  afterAll(() => gateway.close());

  it('token prints only a token, creates org and member, and the gateway accepts it', async () => {
    const { code, stdout, stderr } = await rialto(['token', '--org', 'acme', '--sub', 'bob', '--role', 'admin'], env);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+\n$/);
    const token = stdout.trim();
    const claims = decodeJwt(token);
    expect(decodeProtectedHeader(token).alg).toBe('HS256');
    expect(claims).toMatchObject({ iss: 'rialto', aud: 'rialto', sub: 'bob', org_domain: 'acme' });
    expect(claims.exp! - claims.iat!).toBe(900);
    const policies = await gateway.call('GET', '/api/policies', undefined, token);
    expect(policies.status).toBe(200);
    expect(policies.body.items.map(({ name }: { name: string }) => name)).toEqual(['development-default']);
  });

  it('objects that it creates are audited in their org', async () => {
    const { stdout } = await rialto(['token', '--org', 'audited', '--sub', 'ann', '--role', 'admin'], env);
    const { body } = await gateway.call('GET', '/api/audit/events', undefined, stdout.trim());
    expect(body.items[0]).toMatchObject({ verb: 'member.save', principal: { id: 'rialto-cli' }, surface: 'system' });
  });

  it('a new member has the role member, and a role is changed only when one is given', async () => {
    const roleOf = async (...args: string[]) => {
      const { stdout } = await rialto(['token', '--org', 'roles', '--sub', 'eve', ...args], env);
      expect(stdout).toMatch(/^ey/);
      const [row] = await gateway.sql<{ role: string }>(`select role from members where sub = 'eve'`);
      return row!.role;
    };
    expect(await roleOf()).toBe('member');
    expect(await roleOf('--role', 'viewer')).toBe('viewer');
    expect(await roleOf()).toBe('viewer');
  });

  it('without A2A_SECRET it signs with the secret of the org, and creates one in development', async () => {
    const { A2A_SECRET: _, ...own } = env;
    const { code, stdout } = await rialto(['token', '--org', 'keyed', '--sub', 'kim', '--role', 'admin'], own);
    expect(code).toBe(0);
    expect((await gateway.call('GET', '/api/orgs/keyed', undefined, stdout.trim())).status).toBe(200);
    const rotated = await rialto(['keys', 'rotate', '--org', 'keyed', '--grace', '0'], own);
    expect(rotated.stdout).toMatch(/^[\w-]{64}\n$/);
    const again = await rialto(['token', '--org', 'keyed', '--sub', 'kim'], own);
    expect((await gateway.call('GET', '/api/orgs/keyed', undefined, again.stdout.trim())).status).toBe(200);
  });

  it('creates a new key for cards: a running gateway uses it, and the previous one stays published', async () => {
    const kids = async (): Promise<string[]> =>
      (await gateway.call('GET', '/.well-known/jwks.json', undefined, null)).body.keys.map(
        (key: { kid: string }) => key.kid,
      );
    const [before] = await kids();
    const { code, stdout, stderr } = await rialto(['keys', 'rotate', '--signing', '--grace', '600'], env);
    expect([code, stderr]).toEqual([
      0,
      'cards are signed with the new key; the previous key stays in the JWKS for 600 s more\n',
    ]);
    const kid = stdout.trim();
    await eventually(kids, (found) => found.join() === [kid, before].join());
    const { items } = (await gateway.call('GET', '/api/audit/events?limit=200')).body as { items: { verb: string }[] };
    expect(items.map(({ verb }) => verb)).toContain('signing-key.rotate');
  });

  it('an error is one clear line', async () => {
    const wrong: [string, RegExp][] = [
      ['token --org acme --sub bob --ttl 2h', /1s to 1h/],
      ['token --org acme --sub bob --role boss', /viewer, member, admin/],
      ['token --org Not_A_Slug --sub bob', /--org Not_A_Slug/],
      ['token --org acme', /--sub/],
      ['keys rotate', /one of --org, --signing and --encryption/],
      ['keys rotate --org default --signing', /one of --org/],
      ['keys rotate --encryption', /RIALTO_ENCRYPTION_KEY_OTHER is not set/],
      ['keys rotate --signing --grace never', /--grace never/],
      ['keys rotate --org nobody', /there is no org "nobody"/],
      ['policy disable --org default --name absent', /no such policy/],
      ['nonsense', /unknown command/],
      ['token --orgg x', /unknown option '--orgg'/],
      ['token --sub x', /required option '--org <slug>' not specified/],
    ];
    for (const [line, message] of wrong) {
      const { code, stdout, stderr } = await rialto(line.split(' '), env);
      expect({ line, code, stdout }).toEqual({ line, code: 1, stdout: '' });
      expect(stderr).toMatch(/^rialto: [^\n]+\n$/);
      expect(stderr).toMatch(message);
    }
  });

  it('policy disable gives access back to admins who are locked out by a broken row', async () => {
    await gateway.tokenOf('locked', 'ada', 'admin');
    const token = (await rialto(['token', '--org', 'locked', '--sub', 'ada'], env)).stdout.trim();
    const broken = `insert into policies (id, org_id, name, version, text, source)
      select gen_random_uuid(), id, 'broken', 1, 'forbid(principal', 'api' from orgs where slug = 'locked'`;
    await gateway.sql(broken);
    await gateway.sql(`update orgs set policy_version = policy_version + 1 where slug = 'locked'`);
    const status = async (): Promise<number> => (await gateway.call('GET', '/api/policies', undefined, token)).status;
    const until = async (wanted: number): Promise<void> => {
      for (let polls = 0; polls < 100 && (await status()) !== wanted; polls++)
        await new Promise((go) => setTimeout(go, 100));
      expect(await status()).toBe(wanted);
    };
    await until(403);
    const list = await rialto(['policy', 'list', '--org', 'locked'], env);
    expect(list.stdout).toMatch(/^broken +1 +api/m);
    const { code, stdout } = await rialto(['policy', 'disable', '--org', 'locked', '--name', 'broken'], env);
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'forbid(principal\n' });
    await until(200);
  });

  describe('in production', () => {
    let production: Record<string, string>;
    beforeAll(() => {
      production = { ...env, NODE_ENV: 'production' };
    });

    it('token refuses to create an org or member without --create', async () => {
      const args = ['token', '--org', 'firm', '--sub', 'pat'];
      const refused = await rialto(args, production);
      expect(refused).toMatchObject({ code: 1, stdout: '' });
      expect(refused.stderr).toBe('rialto: there is no org "firm"; --create creates or changes it\n');
      expect(await gateway.sql(`select from orgs where slug = 'firm'`)).toHaveLength(0);
      expect((await rialto([...args, '--create'], production)).code).toBe(0);
      expect((await rialto(args, production)).code).toBe(0);
      const raised = await rialto([...args, '--role', 'admin'], production);
      expect(raised.stderr).toMatch(/"pat" has the role member in the org "firm", not admin/);
      const policies = `select from policies p join orgs o on o.id = p.org_id where o.slug = 'firm'`;
      expect(await gateway.sql(policies)).toHaveLength(0);
    });

    it('token without any secret says how to get one', async () => {
      const { A2A_SECRET: _, ...bare } = production;
      await rialto(['token', '--org', 'plain', '--sub', 'pat', '--create'], {
        ...production,
        RIALTO_A2A_SECRET_ADMINS: 'true',
      });
      const { code, stderr } = await rialto(['token', '--org', 'plain', '--sub', 'pat'], bare);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'rialto: set A2A_SECRET, or create a secret with `rialto keys rotate --org plain`\n',
      });
    });
  });

  it('doctor passes all checks, the MCP door included', async () => {
    await publish(gateway);
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
    const args = ['doctor', '--json', '--url', gateway.url];
    const { code, stdout } = await rialto(args, { ...env, RIALTO_TOKEN: gateway.token });
    const { ok, checks } = JSON.parse(stdout) as { ok: boolean; checks: { check: string; status: string }[] };
    expect(checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(checks.map(({ check }) => check)).toEqual([
      'config',
      'database',
      'schema',
      'queue',
      'clock',
      'encryption-key',
      'auth',
      'gateway',
      'card',
      'mcp',
      'policy',
      'task',
      'webhook',
    ]);
    expect({ ok, code }).toEqual({ ok: true, code: 0 });
    const left = (await gateway.call('GET', '/api/a2a/published')).body.items.map(({ name }: any) => name);
    expect(left.filter((name: string) => name.startsWith('rialto-doctor'))).toEqual([]);
    const tasks = await gateway.sql(`select status_state from a2a_tasks where agent_name like 'rialto-doctor-%'`);
    expect(tasks).toEqual([{ status_state: 'completed' }]);
  });

  it('doctor says how a webhook can be tested when the gateway may not post to this machine', async () => {
    const closed = { RIALTO_OUTBOUND_ALLOW: '192.0.2.0/24', RIALTO_ENCRYPTION_KEY: encryptionKey };
    const strict = await startTestGateway(closed, gateway);
    const { code, stdout } = await rialto(['doctor', '--url', strict.url], { ...env, RIALTO_TOKEN: gateway.token });
    await strict.close();
    expect(stdout).toMatch(/^skipped +webhook +.*add 127\.0\.0\.1\/32 to RIALTO_OUTBOUND_ALLOW/m);
    expect(code).toBe(0);
  });

  it('doctor distinguishes a task that the policies deny from a token without admin rights', async () => {
    const dora = await gateway.tokenOf('default', 'dora', 'admin');
    const text = 'forbid(principal == User::"dora", action == Action::"task_submit", resource);';
    const { body } = await gateway.call('POST', '/api/policies', { name: 'no-tasks', text });
    const { code, stdout } = await rialto(['doctor', '--url', gateway.url], { ...env, RIALTO_TOKEN: dora });
    await gateway.call('DELETE', `/api/policies/${body.id}`);
    expect(stdout).toMatch(/^skipped +task +the policies of the org do not permit a task; `rialto policy list`/m);
    expect(code).toBe(0);
  });

  it('doctor finds no problem before the first start', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-doctor-'));
    const { code, stdout } = await rialto(['doctor'], { NODE_ENV: 'development', RIALTO_DATA_DIR: folder });
    rmSync(folder, { recursive: true, force: true });
    expect(stdout).toMatch(/^ok +schema +none yet: the first start of the gateway makes it/m);
    expect(code).toBe(0);
  });

  it('token reports that it changes the role of a member', async () => {
    const args = ['token', '--org', 'roles', '--sub', 'kim', '--role'];
    expect((await rialto([...args, 'viewer'], env)).stderr).toBe('');
    expect((await rialto([...args, 'admin'], env)).stderr).toBe(
      'kim was viewer in the org roles and is admin from now on, for every token it has\n',
    );
  });

  it('(P18) doctor fails for a wrong key, token or setting and for a silent gateway, and names the cause', async () => {
    await rialto(['keys', 'rotate', '--org', 'default'], env);
    const key = await rialto(['doctor'], { ...env, RIALTO_ENCRYPTION_KEY: wrongKey });
    expect(key.code).toBe(1);
    expect(key.stdout).toMatch(/^failed +encryption-key +RIALTO_ENCRYPTION_KEY is not the key/m);
    const token = await rialto(['doctor', '--url', gateway.url], { ...env, RIALTO_TOKEN: 'rlt_wrong' });
    expect(token.code).toBe(1);
    // The later checks would fail for the same reason, with misleading hints (P18).
    expect(token.stdout).toMatch(/^failed +mcp .*401/m);
    for (const check of ['policy', 'task', 'webhook'])
      expect(token.stdout).toMatch(new RegExp(`^skipped +${check} +the gateway does not take this token`, 'm'));
    expect(token.stderr).toMatch(/^mcp: see RIALTO_TOKEN/m);
    const silent = await rialto(['doctor', '--url', 'http://127.0.0.1:1'], env);
    expect(silent.stderr).toMatch(/^gateway: see that it runs at this address.*\nrialto: failed: gateway\n$/);
    const member = await gateway.tokenOf('default', 'mel');
    const limited = await rialto(['doctor', '--url', gateway.url], { ...env, RIALTO_TOKEN: member });
    expect(limited.code).toBe(0);
    expect(limited.stdout).toMatch(/^skipped +task +the token is not that of an admin/m);
    const away = { DATABASE_URL: 'postgres://rialto@127.0.0.1:1/rialto' };
    const database = await rialto(['doctor', '--url', gateway.url], { ...env, ...away, RIALTO_TOKEN: gateway.token });
    expect(database.stdout.match(/^skipped .*the database cannot be used$/gm)).toHaveLength(4);
    expect(database.stderr).toMatch(/^database: [^\n]+\nrialto: failed: database\n$/);
    const setting = await rialto(['doctor'], { ...env, RIALTO_PROT: '1' });
    expect(setting.stdout).toMatch(/^failed +config +RIALTO_PROT is not a setting/m);
  });
});

describe('rialto db', () => {
  const database = `${runPrefix()}cli`;
  let url: string;
  beforeAll(async () => {
    await asAdmin((client) => client.query(`create database "${database}"`));
    const address = new URL(process.env.RIALTO_TEST_ADMIN_URL!);
    address.pathname = `/${database}`;
    url = address.href;
  });
  afterAll(() => asAdmin((client) => client.query(`drop database "${database}" with (force)`)).then(() => undefined));

  it('needs only DATABASE_URL, waits for the schema lock, creates it and the schema of the queue', async () => {
    const late = await rialto(['db', 'wait', '--timeout', '1'], { DATABASE_URL: url });
    expect(late.code).toBe(1);
    expect(late.stderr).toMatch(/^rialto: the schema is behind: 0 of \d+ migrations; waited 1 s\n$/);

    const waiting = rialto(['db', 'wait', '--timeout', '60'], { DATABASE_URL: url });
    const [first, second] = await Promise.all([
      rialto(['db', 'migrate'], { DATABASE_URL: url }),
      rialto(['db', 'migrate'], { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/x', RIALTO_DATABASE_DIRECT_URL: url }),
    ]);
    expect([first.code, second.code]).toEqual([0, 0]);
    expect((await waiting).code).toBe(0);
    const client = new Client({ connectionString: url });
    await client.connect();
    const { rows } = await client.query<{ ours: string; queue: string }>(
      `select to_regclass('orgs')::text as ours, to_regclass('bullmq.migration')::text as queue`,
    );
    await client.query('drop schema bullmq cascade');
    await client.end();
    expect(rows).toEqual([{ ours: 'orgs', queue: 'bullmq.migration' }]);
    const half = await rialto(['db', 'wait', '--timeout', '0'], { DATABASE_URL: url });
    expect(half.stderr).toMatch(/the schema of the queue is missing/);
  });

  it.each([
    [{}, /DATABASE_URL is not set/],
    [{ DATABASE_URL: 'replace-me://user:password@host:5432/rialto' }, /DATABASE_URL must be a URL/],
    [{ DATABASE_URL: 'postgres://rialto@127.0.0.1:1/rialto' }, /DATABASE_URL: the server cannot be reached/],
  ])('reports in one line the problem with %j', async (env, message) => {
    const { code, stderr } = await rialto(['db', 'migrate'], { ...env, NODE_ENV: 'production' });
    expect(code).toBe(1);
    expect(stderr).toMatch(/^rialto: [^\n]+\n$/);
    expect(stderr).toMatch(message);
  });
});

describe('rialto token on the embedded database', () => {
  const dataDir = mkdtempSync(join(tmpdir(), 'rialto-test-'));
  afterAll(() => rmSync(dataDir, { recursive: true, force: true }));

  it('works with and without a running gateway, and releases the folder', async () => {
    const env = { RIALTO_DATA_DIR: dataDir };
    const args = ['token', '--org', 'acme', '--sub', 'bob', '--role', 'admin'];
    const before = await rialto(args, env);
    expect({ code: before.code, stderr: before.stderr }).toEqual({ code: 0, stderr: '' });
    const { startGateway } = await import('../../../src/app.js');
    const settings = { NODE_ENV: 'test', PORT: '0', METRICS_PORT: '0', RIALTO_LOG_LEVEL: 'silent', ...env };
    const gateway = await startGateway(settings);
    try {
      const during = await rialto(args, env);
      expect(during.code).toBe(0);
      for (const { stdout } of [before, during]) {
        const headers = { authorization: `Bearer ${stdout.trim()}` };
        expect((await fetch(`${gateway.url}/api/orgs/acme`, { headers })).status).toBe(200);
      }
    } finally {
      await gateway.close();
    }
  });
});
