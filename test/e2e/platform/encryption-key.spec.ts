import { randomBytes } from 'node:crypto';
import { publish, rpc, rpcError, userMessage } from '../../support/clients/a2a.js';
import { rialto } from '../../support/gateway/cli.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { TestUpstream } from '../../support/stubs/upstream.js';
import { sealedColumns } from '../../../src/platform/secrets/sealed-columns.js';

const newKey = (): string => randomBytes(32).toString('base64');

describe('P4 the encryption key', () => {
  const [before, after] = [newKey(), newKey()];
  let first: TestGateway;
  let agent: StubAgent;
  let server: TestUpstream;

  beforeAll(async () => {
    first = await startTestGateway({ RIALTO_ENCRYPTION_KEY: before });
    agent = await startStubAgent({ name: 'guarded' });
    server = await TestUpstream.start('sessions');
    const credential = { type: 'bearer', token: 'canary-of-an-agent' };
    await created('/api/a2a/agents', { url: `${agent.cardUrl}?key=canary`, slug: 'guarded', credential });
    const headers = { Authorization: 'Bearer canary-of-a-server' };
    await created('/api/mcp/servers', { id: 'own', url: server.url, headers, userCredentials: 'optional' });
    const own = { headers: { Authorization: 'Bearer canary-of-a-user' } };
    expect((await first.call('PUT', '/api/mcp/servers/own/credential', own)).status).toBeLessThan(300);
    await created('/api/orgs', { slug: 'acme' });
    await publish(first, { name: 'box', executor: { kind: 'mailbox' } });
    await publish(first, { name: 'service', executor: { kind: 'http', url: 'http://127.0.0.1:9/work?key=canary' } });
    const open = { message: userMessage('x'), configuration: { returnImmediately: true } };
    const { task } = await rpc(first, 'SendMessage', open, { agent: 'box' });
    const authentication = { scheme: 'Bearer', credentials: 'canary-of-a-receiver' };
    const push = { taskId: task.id, url: 'http://127.0.0.1:9/hook', token: 'canary-of-a-push', authentication };
    await rpc(first, 'CreateTaskPushNotificationConfig', push, { agent: 'box' });
    const text = '@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"asking");';
    await created('/api/policies', { name: 'ask', text });
    await publish(first, { name: 'asking' });
    await rpcError(first, 'SendMessage', { message: userMessage('x') }, { agent: 'asking' });
    expect((await first.call('POST', '/api/audit/verify')).body.valid).toBe(true);
    await first.gateway.close();
  });
  afterAll(async () => {
    await Promise.all([agent.close(), server.close()]);
    await first.close();
  });

  const created = async (path: string, body: object): Promise<void> => {
    const answer = await first.call('POST', path, body);
    expect([path, answer.status]).toEqual([path, 201]);
  };
  /** Returns the columns with sealed values, and their counts by key id. */
  const sealed = async (): Promise<{ column: string; kid: string; count: number }[]> => {
    const columns = await first.sql(
      `select table_name as table, column_name as column from information_schema.columns
       where table_schema = 'public' and data_type in ('text', 'json', 'jsonb')`,
    );
    const found = [];
    for (const { table, column } of columns) {
      const rows = await first.sql(
        `select split_part(v, '.', 2) as kid, count(*)::int as count
         from (select "${column}"::text as v from "${table}") t
         where v ~ '^v1\\.[0-9a-f]{8}\\.'
         group by 1`,
      );
      found.push(...rows.map(({ kid, count }) => ({ column: `${table}.${column}`, kid, count })));
    }
    return found;
  };
  /** Returns the readiness of a gateway, after it has checked its key. */
  const readyOf = (at: TestGateway) =>
    eventually(
      () => at.call('GET', '/readyz', undefined, null),
      ({ body }) => body.checks.encryption.detail !== 'no answer in time',
    );
  const started = (env: Record<string, string>) => startTestGateway(env, first);
  const opensAll = async (at: TestGateway): Promise<void> => {
    agent.requests.length = 0;
    await at.rpc('tools/call', { name: 'guarded.work', arguments: {} });
    expect(agent.requests[0]!.headers.authorization).toBe('Bearer canary-of-an-agent');
    expect((await at.rpc('tools/call', { name: 'own__echo', arguments: { text: 'x' } })).result.isError ?? false).toBe(
      false,
    );
  };

  it('seals exactly the columns in the list of sealed columns', async () => {
    const known = sealedColumns.map(({ table, column }) => `${table}.${column}`);
    const columns = (await sealed()).map(({ column }) => column);
    expect(columns.length).toBeGreaterThanOrEqual(7);
    expect(known).toEqual(expect.arrayContaining(columns));
  });

  it('that is wrong makes a gateway unready, with the reason', async () => {
    const wrong = await started({ RIALTO_ENCRYPTION_KEY: after });
    const ready = await readyOf(wrong);
    expect([ready.status, ready.body.checks.encryption]).toEqual([
      503,
      { status: 'down', detail: 'RIALTO_ENCRYPTION_KEY is not the key that sealed this secret' },
    ]);
    // A checkpoint that cannot be verified may or may not have been changed (P5).
    const verified = await wrong.call('POST', '/api/audit/verify');
    expect([verified.status, verified.body.code]).toEqual([503, 'unavailable']);
    await wrong.close();
  });

  it('is replaced step by step: old values can always be opened, and are finally sealed with the new one', async () => {
    const both = { RIALTO_ENCRYPTION_KEY: after, RIALTO_ENCRYPTION_KEY_OTHER: before };
    const early = await started({ RIALTO_ENCRYPTION_KEY: before, RIALTO_ENCRYPTION_KEY_OTHER: after });
    await opensAll(early);
    const old = (await sealed())[0]!.kid;
    const api = await started({ ...both, RIALTO_ROLE: 'api' });
    await opensAll(api);
    await opensAll(early);
    expect((await sealed()).some(({ kid }) => kid === old)).toBe(true);
    await Promise.all([api.close(), early.close()]);

    const env = { ...both, DATABASE_URL: first.database.url, RIALTO_DATA_DIR: first.dataDir };
    const rotated = await rialto(['keys', 'rotate', '--encryption'], env);
    expect([rotated.code, rotated.stdout]).toEqual([0, expect.stringMatching(/^[1-9]\d* secrets were sealed/)]);
    expect((await sealed()).filter(({ kid }) => kid === old)).toEqual([]);
    expect((await rialto(['keys', 'rotate', '--encryption'], env)).stdout).toMatch(/^0 secrets/);

    const later = await started({ RIALTO_ENCRYPTION_KEY: after });
    expect((await readyOf(later)).body.checks.encryption).toEqual({ status: 'ok' });
    await opensAll(later);
    await later.close();
  });

  it('is replaced by a worker alone, too, and values that no key opens are left and reported', async () => {
    const next = newKey();
    const [{ id }] = (await first.sql('select id from agent_cards limit 1')) as [{ id: string }];
    const [{ credential }] = (await first.sql('select credential from agent_cards limit 1')) as [
      { credential: string },
    ];
    await first.sql('update agent_cards set credential = $1 where id = $2', [
      credential.replace(/^v1\.\w+/, 'v1.00000000'),
      id,
    ]);
    const env = { RIALTO_ENCRYPTION_KEY: next, RIALTO_ENCRYPTION_KEY_OTHER: after };
    const worker = await started({ ...env, RIALTO_ROLE: 'worker' });
    await eventually(sealed, (all) => new Set(all.map(({ kid }) => kid)).size === 2);
    await eventually(
      () => worker.log.some((line) => line.includes('no configured encryption key opens')),
      (is) => is,
    );
    await worker.close();
    const report = await rialto(['keys', 'rotate', '--encryption'], {
      ...env,
      DATABASE_URL: first.database.url,
      RIALTO_DATA_DIR: first.dataDir,
    });
    expect([report.code, report.stderr]).toEqual([1, expect.stringContaining('neither key opens 1 of agent_cards')]);
  });
});
