import { request, type ClientRequest } from 'node:http';
import { orgTables } from '../../../src/org-tables.js';
import { OrgPurgeSweeper } from '../../../src/policy/orgs/org-purge.sweeper.js';
import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { becomesReady, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { asyncTask, data } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('the data of an org', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  let remote: StubAgent;
  let upstream: TestUpstream;

  beforeAll(async () => {
    gateway = await startTestGateway();
    sink = await startWebhookSink();
    upstream = await TestUpstream.start();
    remote = await startStubAgent({ name: 'far', behaviour: asyncTask(1, data({ ok: true })) });
  });
  afterAll(async () => {
    await remote.close();
    await upstream.close();
    await sink.close();
    await gateway.close();
  });

  /** Revokes 30,000 tokens of an org, so that its export is long. */
  const manyRevoked = `
    insert into revoked_tokens (org_id, jti, expires_at)
    select $1, repeat(n::text, 100), now() + interval '1 hour' from generate_series(1, 30000) n`;

  /** Opens an export and reads only its beginning. */
  const stalledReader = async (slug: string, token: string): Promise<ClientRequest> => {
    const reader = request(`${gateway.url}/api/orgs/${slug}/export`, { headers: { authorization: `Bearer ${token}` } });
    reader.on('error', () => undefined);
    await new Promise<void>((resolve) =>
      reader.on('response', (response) => response.once('data', () => (response.pause(), resolve()))).end(),
    );
    return reader;
  };
  /** Creates an org with objects of every kind, with a canary in each secret. */
  const createOrg = async (slug: string): Promise<{ token: string; id: string }> => {
    const token = await gateway.tokenOf(slug, 'ann', 'admin');
    const [{ id }] = await gateway.sql('select id from orgs where slug = $1', [slug]);
    await gateway.call(
      'POST',
      '/api/a2a/agents',
      { url: remote.url, credential: { type: 'bearer', token: `canary-credential-${slug}` } },
      token,
    );
    const headers = { Authorization: `Bearer canary-header-${slug}` };
    const userCredentials = 'optional';
    await gateway.call('POST', '/api/mcp/servers', { id: 'up', url: upstream.url, headers, userCredentials }, token);
    const own = { headers: { Authorization: `Bearer canary-own-${slug}` } };
    await gateway.call('PUT', '/api/mcp/servers/up/credential', own, token);
    await publish(gateway, {}, token);
    const ask = '@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"asking");';
    await gateway.call('POST', '/api/policies', { name: 'ask', text: ask }, token);
    await publish(gateway, { name: 'asking' }, token);
    const question = { message: userMessage(`canary-approval-${slug}`) };
    await rpcCall(gateway, 'SendMessage', question, { agent: 'asking', token });
    await publish(gateway, { name: 'svc', executor: { kind: 'http', url: `${sink.url}/svc` } }, token);
    await gateway.call('POST', '/api/keys', { name: 'k' }, token);
    await gateway.call('POST', `/api/orgs/${slug}/secret`, {}, token);
    await gateway.call('POST', '/api/tokens/revocations', { jti: `jti-${slug}` }, token);
    await gateway.call('PUT', `/api/orgs/${slug}/domains`, { domains: [`${slug}.example`] });
    await gateway.call('POST', '/api/webhooks/secrets', {}, token);
    const push = {
      url: `${sink.url}/hook?key=canary-query-${slug}`,
      token: `canary-token-${slug}`,
      authentication: { scheme: 'Bearer', credentials: `canary-authentication-${slug}` },
    };
    const configuration = { taskPushNotificationConfig: push, returnImmediately: true };
    await rpc(
      gateway,
      'SendMessage',
      { message: userMessage(`words of ${slug}`), configuration },
      { token, headers: { 'idempotency-key': slug } },
    );
    await gateway.rpc('tools/call', { name: 'far.work', arguments: {} }, token);
    const thread = { url: `${sink.url}/thread?key=canary-query-${slug}`, id: 't', token: `canary-thread-${slug}` };
    await gateway.call('POST', '/api/a2a/invoke', { agentCardId: 'far', skillId: 'work', thread }, token);
    await eventually(
      () => gateway.sql(`select status from webhook_deliveries where org_id = $1`, [id]),
      (rows) => rows.length > 0 && rows.every(({ status }) => status === 'delivered'),
    );
    return { token, id };
  };
  const rowsOf = async (id: string): Promise<Record<string, number>> => {
    const counts: Record<string, number> = {};
    for (const { table, children = [] } of orgTables) {
      const [{ n }] = await gateway.sql(`select count(*)::int as n from ${table} where org_id = $1`, [id]);
      counts[table] = n;
      for (const child of children) {
        const from = `${child.table} c where c.${child.column} in (select id from ${table} where org_id = $1)`;
        counts[child.table] = (await gateway.sql(`select count(*)::int as n from ${from}`, [id]))[0].n;
      }
    }
    return counts;
  };

  it('is in the list of its tables: it has every table with an org, and every table that depends on one', async () => {
    const known = orgTables.flatMap(({ table, children = [] }) => [table, ...children.map((child) => child.table)]);
    const rows = await gateway.sql(
      `select table_name as name from information_schema.tables where table_schema = 'public'
       and table_name not in ('orgs', 'schema_migrations', 'signing_keys') order by 1`,
    );
    expect([...known].sort()).toEqual(rows.map(({ name }) => name));
  });

  it('has no column in an export that looks like a secret', async () => {
    const columns = await gateway.sql(
      `select table_name as table, column_name as column from information_schema.columns where table_schema = 'public'
       and column_name ~ 'secret|sealed|token|credential|password|authentication' order by 1, 2`,
    );
    const withheld = orgTables.flatMap(({ table, withheld: names = [] }) => names.map((name) => `${table}.${name}`));
    const harmless = ['agent_cards.credential_hint', 'agent_cards.credential_kind', 'signing_keys.sealed'];
    const exported = columns
      .map(({ table, column }) => `${table}.${column}`)
      .filter((name) => !withheld.includes(name));
    expect(exported).toEqual(harmless);
  });

  it('can be exported by its admins, with a last line that marks the end, without secrets and other orgs', async () => {
    const { token } = await createOrg('acme');
    await createOrg('globex');
    const answer = await gateway.call('GET', '/api/orgs/acme/export', undefined, token);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/x-ndjson']);
    const lines = (answer.body as string)
      .trimEnd()
      .split('\n')
      .map((text) => JSON.parse(text));
    expect(lines[0]).toMatchObject({ kind: 'org', data: { slug: 'acme' } });
    expect(lines.at(-1)).toEqual({ kind: 'end', lines: lines.length - 1 });
    const kinds = new Set(lines.map(({ kind }) => kind));
    const absent = ['card-change', 'cost', 'audit-checkpoint', 'audit-timestamp', 'audit-link'];
    for (const { kind, children = [] } of orgTables)
      for (const each of [kind, ...children.map((child) => child.kind)])
        if (each !== undefined && !absent.includes(each))
          expect({ kind: each, isThere: kinds.has(each) }).toEqual({ kind: each, isThere: true });
    expect(answer.body).toContain('words of acme');
    expect(answer.body).not.toMatch(/canary|globex|whsec_|rlt_[\w-]{12}/);
    const recorded = (await gateway.call('GET', '/api/audit/events', undefined, token)).body.items;
    expect(recorded.some(({ verb }: any) => verb === 'org.export')).toBe(true);
  });

  it('cannot be exported by others, and a reader that left leaves nothing open', async () => {
    const { token, id } = await createOrg('initech');
    const bob = await gateway.tokenOf('initech', 'bob');
    const stranger = await gateway.tokenOf('acme', 'eve', 'admin');
    expect((await gateway.call('GET', '/api/orgs/initech/export', undefined, bob)).status).toBe(403);
    expect((await gateway.call('GET', '/api/orgs/initech/export', undefined, stranger)).status).toBe(404);
    await gateway.sql(manyRevoked, [id]);
    const leaving = await stalledReader('initech', token);
    const busy = await gateway.call('GET', '/api/orgs/acme/export', undefined, stranger);
    expect([busy.status, busy.body.code]).toEqual([503, 'unavailable']);
    leaving.destroy();
    // Its transaction may continue for a moment between two reads.
    await eventually(
      () => gateway.call('GET', '/api/orgs/acme/export', undefined, stranger),
      ({ status }) => status === 200,
    );
    await eventually(
      () =>
        gateway.sql(
          `select from pg_stat_activity where state = 'idle in transaction' and datname = current_database()`,
        ),
      ({ length }) => length === 0,
    );
  });

  it('an export that the database ends harms no other reader: the process and other exports continue', async () => {
    const { token, id } = await createOrg('stark');
    await gateway.sql(manyRevoked, [id]);
    const stalled = await stalledReader('stark', token);
    await gateway.sql(
      `select pg_terminate_backend(pid)
       from pg_stat_activity
       where state = 'idle in transaction' and datname = current_database()`,
    );
    await becomesReady(gateway);
    stalled.destroy();
    const again = await eventually(
      () => gateway.call('GET', '/api/orgs/stark/export', undefined, token),
      ({ status }) => status === 200,
    );
    expect(String(again.body).trimEnd().split('\n').at(-1)).toContain('"end"');
  });

  it('is deleted with the org: tokens at once, rows in batches, despite kill -9; audit and others stay', async () => {
    const { token, id } = await createOrg('hooli');
    const others = (await gateway.sql(`select id from orgs where slug = 'globex'`))[0].id;
    const before = [await rowsOf(id), await rowsOf(others)] as const;
    expect(before[0].webhook_attempts).toBeGreaterThan(0);
    await gateway.sql(
      `insert into a2a_tasks (id, org_id, agent_id, agent_name, context_id, owner, principal, status_state,
         status_timestamp, history, artifacts, seq, folded_seq)
       select gen_random_uuid(), $1, $1, 'a', 'c', 'o', '{}', 'completed',
         now(), json_build_array(repeat('x', 2000)), '[]', 1, 1
       from generate_series(1, 30000)`,
      [id],
    );
    expect((await gateway.call('DELETE', '/api/orgs/hooli', undefined, token)).status).toBe(204);
    // The minute for work in progress lasts as long as the test needs.
    await gateway.sql(`update orgs set deleted_at = now() + interval '1 hour' where id = $1`, [id]);
    expect((await gateway.call('GET', '/api/orgs/hooli', undefined, token)).status).toBe(401);
    const left = async (): Promise<number> =>
      (await gateway.sql('select count(*)::int as count from a2a_tasks where org_id = $1', [id]))[0].count;

    // Slow enough for a kill in the middle.
    await gateway.sql(
      `create function linger() returns trigger language plpgsql as $$
       begin perform pg_sleep(0.3); return null; end $$`,
    );
    await gateway.sql(`create trigger linger before delete on a2a_tasks execute function linger()`);
    const killed = gateway.beside({ RIALTO_ROLE: 'worker' });
    await eventually(left, (count) => count < 29_000);
    killed.child.kill('SIGKILL');
    await killed.ended;
    await gateway.sql('drop function linger cascade');
    const halfway = await left();
    expect(halfway).toBeGreaterThan(0);
    const hanging = `select from a2a_task_events e where not exists (select from a2a_tasks t where t.id = e.task_id)`;
    expect(await gateway.sql(hanging)).toEqual([]);

    const purge = () => gateway.gateway.get(OrgPurgeSweeper).sweep();
    await eventually(
      async () => (await purge(), left()),
      (count) => count === 0,
    );
    const [{ purged_at: early }] = await gateway.sql('select purged_at from orgs where id = $1', [id]);
    expect(early).toBeNull();
    await gateway.sql(`update orgs set deleted_at = now() - interval '2 minutes' where id = $1`, [id]);
    await purge();
    const after = await rowsOf(id);
    for (const { table, outlivesOrg, children = [] } of orgTables) {
      if (outlivesOrg) continue;
      for (const each of [table, ...children.map((child) => child.table)])
        expect({ table: each, rows: after[each] }).toEqual({ table: each, rows: 0 });
    }
    expect(after.audit_events).toBeGreaterThanOrEqual(before[0].audit_events!);
    expect(await rowsOf(others)).toMatchObject({ a2a_tasks: before[1].a2a_tasks, members: before[1].members });
    expect(await gateway.sql('select slug, name, purged_at is not null as done from orgs where id = $1', [id])).toEqual(
      [{ slug: `hooli~${id}`, name: '', done: true }],
    );
    expect((await gateway.call('POST', '/api/orgs', { slug: 'hooli' })).status).toBe(201);
  });
});
