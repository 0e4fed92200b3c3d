import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';

const setTier = (gateway: TestGateway, slug: string, trustTier: number, token?: string) =>
  gateway.call('PATCH', `/api/orgs/${slug}`, { trustTier }, token);

describe('trust tiers of orgs with quotas', () => {
  let gateway: TestGateway;
  let admin: string;
  const echo = { name: 'echo', description: 'x', executor: { kind: 'echo' }, a2a_enabled: true };

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_TRUST_QUOTAS: 'true' });
    admin = await gateway.tokenOf('acme', 'ann', 'admin');
    await publish(gateway, echo, admin);
    await publish(gateway);
  });
  afterAll(() => gateway.close());

  const orgId = async (slug: string) => (await gateway.sql('select id from orgs where slug = $1', [slug]))[0].id;
  const hasSent = async (slug: string, messages: number, day = `(now() at time zone 'utc')::date`) =>
    gateway.sql(
      `insert into org_messages (org_id, day, messages) values ($1, ${day}, $2)
       on conflict (org_id) do update set day = excluded.day, messages = excluded.messages`,
      [await orgId(slug), messages],
    );
  const send = (more: object = {}, headers: Record<string, string> = {}, token = admin) =>
    gateway.call('POST', '/a2a/agents/echo/message:send', { message: userMessage('x'), ...more }, token, headers);
  const hook = (index: number) => `https://hooks.example/${index}`;
  const counted = async (slug: string) =>
    (await gateway.sql('select messages from org_messages where org_id = $1', [await orgId(slug)]))[0]?.messages ?? 0;

  it('RI-49 a new org is a builder, that of the operator an organisation; only the operator changes it', async () => {
    expect((await gateway.call('GET', '/api/orgs/acme', undefined, admin)).body.trustTier).toBe(1);
    expect((await gateway.call('GET', '/api/orgs/default')).body.trustTier).toBe(3);
    expect((await setTier(gateway, 'acme', 3, admin)).status).toBe(403);
    expect((await setTier(gateway, 'acme', 4)).status).toBe(400);
    expect((await gateway.call('GET', '/api/orgs/acme', undefined, admin)).body.trustTier).toBe(1);
  });

  it('RI-49 messages of a day end with 429, the reason and the time, in all processes and for each door', async () => {
    await hasSent('acme', 98);
    const key = { 'idempotency-key': 'k1' };
    expect((await send({}, key)).status).toBe(201);
    expect(await counted('acme')).toBe(99);
    const both = await Promise.all([send(), send(), send()]);
    expect(both.map(({ status }) => status).sort()).toEqual([200, 429, 429]);
    const refused = both.find(({ status }) => status === 429)!;
    const tomorrow = new Date(Math.ceil((Date.now() + 1) / 86_400_000) * 86_400_000).toISOString();
    expect(JSON.stringify(refused.body)).toContain('an org of trust tier 1 may send 100 messages a day');
    expect(JSON.stringify(refused.body)).toContain(tomorrow);
    const seconds = Number(refused.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(86_400);
    const before = await gateway.sql('select count(*) from a2a_tasks');
    const other = await startTestGateway({ RIALTO_TRUST_QUOTAS: 'true' }, gateway);
    try {
      expect(
        (await rpcCall(other, 'SendMessage', { message: userMessage('x') }, { token: admin })).body.error,
      ).toMatchObject({ code: -32000 });
    } finally {
      await other.close();
    }
    const tool = { name: 'send_to_agent', arguments: { agent: 'echo', message: 'x' } };
    expect(JSON.stringify(await gateway.rpc('tools/call', tool, admin))).toContain('100 messages a day');
    expect(await gateway.sql('select count(*) from a2a_tasks')).toEqual(before);
    expect(await counted('acme')).toBe(100);
  });

  it('RI-49 a repeated message is not counted, the next day begins at zero, other orgs are not touched', async () => {
    await hasSent('acme', 99);
    const key = { 'idempotency-key': 'k2' };
    const repeated = { message: { ...userMessage('again'), messageId: 'm-49' } };
    expect((await send(repeated, key)).status).toBe(201);
    expect((await send(repeated, key)).status).toBe(200);
    expect((await send()).status).toBe(429);
    const globex = await gateway.tokenOf('globex', 'gina', 'admin');
    await publish(gateway, echo, globex);
    expect((await send({}, {}, globex)).status).toBe(200);
    await hasSent('acme', 100, `(now() at time zone 'utc')::date - 1`);
    expect((await send()).status).toBe(200);
    expect(await counted('acme')).toBe(1);
  });

  it('RI-49 concurrent messages with one idempotency key are counted once', async () => {
    await hasSent('acme', 0);
    const same = { message: { ...userMessage('at once'), messageId: 'm-50' } };
    const answers = await Promise.all(Array.from({ length: 8 }, () => send(same, { 'idempotency-key': 'k3' })));
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(7).fill(200), 201]);
    expect(new Set(answers.map(({ body }) => body.task.id)).size).toBe(1);
    expect(await counted('acme')).toBe(1);
  });

  it('RI-49 the quota follows the tier: more for 2, no count for 3, and tier 0 may not send', async () => {
    await hasSent('acme', 100);
    expect((await send()).status).toBe(429);
    await setTier(gateway, 'acme', 2);
    expect((await send()).status).toBe(200);
    await hasSent('acme', 1_000);
    expect((await send()).status).toBe(429);
    await setTier(gateway, 'acme', 3);
    expect((await send()).status).toBe(200);
    expect(await counted('acme')).toBe(1_000);
    await setTier(gateway, 'acme', 0);
    const refused = await send();
    expect([refused.status, JSON.stringify(refused.body)]).toEqual([
      403,
      expect.stringContaining('an org of trust tier 0 may not send messages'),
    ]);
    await setTier(gateway, 'acme', 1);
  });

  it('RI-49 the quota of groups holds for many changes at once', async () => {
    const org = await gateway.tokenOf('hooli', 'hal', 'admin');
    const answers = await Promise.all(
      Array.from({ length: 12 }, (_, index) =>
        gateway.call('POST', '/api/orgs/hooli/members', { sub: `many${index}`, groups: [`g${index}`] }, org),
      ),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(5).fill(201), ...Array(7).fill(429)]);
  });

  it('RI-49 published agents, groups and webhooks of an agent have quotas', async () => {
    const org = await gateway.tokenOf('initech', 'ira', 'admin');
    const post = (path: string, body: object) => gateway.call('POST', path, body, org);
    for (const name of ['echo', 'two', 'three']) await publish(gateway, { ...echo, name }, org);
    const fourth = await post('/api/a2a/published', { ...echo, name: 'four' });
    expect([fourth.status, fourth.body]).toEqual([
      429,
      expect.objectContaining({ quota: 'agents', limit: 3, trustTier: 1, detail: expect.stringMatching('3 agents') }),
    ]);
    await gateway.call('DELETE', '/api/a2a/published/three', undefined, org);
    expect((await post('/api/a2a/published', { ...echo, name: 'four' })).status).toBe(201);

    const member = (sub: string, groups: string[]) => post('/api/orgs/initech/members', { sub, groups });
    expect((await member('m1', ['a', 'b', 'c'])).status).toBe(201);
    expect((await post('/api/keys', { name: 'k', groups: ['c', 'd', 'e'] })).status).toBe(201);
    expect((await member('m2', ['a', 'e'])).status).toBe(201);
    expect((await member('m3', ['f'])).body).toMatchObject({ status: 429, quota: 'groups', limit: 5 });
    expect((await post('/api/keys', { name: 'k', groups: ['f'] })).status).toBe(429);
    expect(await gateway.sql(`select from members where sub = 'm3'`)).toEqual([]);

    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { token: org });
    const configure = (index: number, taskId: string = task.id) =>
      rpcCall(
        gateway,
        'CreateTaskPushNotificationConfig',
        { taskId, id: `c${index}`, url: hook(index) },
        { token: org },
      );
    for (const index of [1, 2, 3]) expect((await configure(index)).body.error).toBeUndefined();
    expect(JSON.stringify((await configure(4)).body.error)).toContain('3 webhooks for each agent');
    const again = await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { token: org });
    expect((await configure(1, again.task.id)).body.error).toBeUndefined(); // a known URL
    const taskPushNotificationConfig = { url: hook(5) };
    const along = await rpcCall(
      gateway,
      'SendMessage',
      { message: userMessage('x'), configuration: { taskPushNotificationConfig } },
      { token: org },
    );
    expect(JSON.stringify(along.body.error)).toContain('3 webhooks for each agent');
  });

  it('RI-49 the quota of webhooks is exact for changes at once, at every door', async () => {
    const org = await gateway.tokenOf('umbrella', 'uma', 'admin');
    await publish(gateway, echo, org);
    const send = () => rpc(gateway, 'SendMessage', { message: userMessage('x') }, { token: org });
    const tasks = await Promise.all(Array.from({ length: 12 }, send));
    const configure = (taskId: string, index: number) =>
      index % 2 === 0
        ? rpcCall(gateway, 'CreateTaskPushNotificationConfig', { taskId, url: hook(index) }, { token: org })
        : gateway.call('POST', '/api/webhooks/configs', { taskId, url: hook(index) }, org);
    const answers = await Promise.all(tasks.map(({ task }, index) => configure(task.id, index)));
    const refused = answers.filter(({ body }) => JSON.stringify(body).includes('3 webhooks for each agent'));
    expect(refused).toHaveLength(9);
    expect(await gateway.sql('select from push_configs where org_id = $1', [await orgId('umbrella')])).toHaveLength(3);
  });
});

describe('trust tiers without quotas', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_MAX_PAYLOAD_BYTES: '2000', RIALTO_MAX_METADATA_BYTES: '500' });
  });
  afterAll(() => gateway.close());

  it('RI-49 limit nothing and count nothing', async () => {
    const token = await gateway.tokenOf('acme', 'ann', 'admin');
    await setTier(gateway, 'acme', 0);
    for (const name of ['echo', 'a', 'b', 'c']) await publish(gateway, { name }, token);
    expect((await rpc(gateway, 'SendMessage', { message: userMessage('x') }, { token })).task).toBeDefined();
    expect(await gateway.sql('select from org_messages')).toEqual([]);
  });

  it('RI-47 payloads and metadata over their limits are 413 at every door, and nothing is stored', async () => {
    await publish(gateway, { name: 'sized' });
    const agent = 'sized';
    const tasks = () => gateway.sql(`select from a2a_tasks where agent_name = 'sized'`);
    const large = userMessage('x'.repeat(2_000));
    const tagged = userMessage('x', { metadata: { note: 'y'.repeat(500) } });
    const sealed = (bytes: number) => {
      const encrypted_payload = Buffer.alloc(Math.ceil((bytes * 3) / 4), 1)
        .toString('base64url')
        .slice(0, bytes);
      return userMessage('', { parts: [{ data: { encrypted_payload, encryption_version: 'hpke-v1' } }] });
    };
    for (const [message, text] of [
      [large, 'parts of the message has'],
      [tagged, 'metadata of the message has'],
      [sealed(131_073), 'encrypted_payload of the message has 131073 bytes; at most 131072 are accepted'],
    ] as const) {
      const rest = await gateway.call('POST', '/a2a/agents/sized/message:send', { message });
      expect([rest.status, JSON.stringify(rest.body)]).toEqual([413, expect.stringContaining(text)]);
      for (const method of ['SendMessage', 'SendStreamingMessage']) {
        const { body } = await rpcCall(gateway, method, { message }, { agent });
        expect(body.error.message).toContain(text);
      }
    }
    const { body: closed } = await rpcCall(gateway, 'SendMessage', { message: sealed(131_073) }, { agent });
    expect(JSON.stringify(closed.error)).toContain('split the content into several encrypted messages');
    const outer = { message: userMessage('x'), metadata: { note: 'y'.repeat(500) } };
    expect((await rpcCall(gateway, 'SendMessage', outer, { agent })).body.error.message).toContain('metadata');
    expect(await tasks()).toEqual([]);
    await rpc(gateway, 'SendMessage', { message: userMessage('x'.repeat(1_900)) }, { agent });
    expect(await tasks()).toHaveLength(1);
  });

  it('RI-48 an agent does not write to itself: 422, and nothing is stored', async () => {
    const stub = await startStubAgent({ name: 'kofi' });
    const stubs = [stub];
    try {
      await gateway.call('POST', '/api/a2a/agents', { url: stub.url, slug: 'kofi' });
      await publish(gateway, { name: 'facade', executor: { kind: 'remote', agentId: 'kofi' } });
      await publish(gateway, { name: 'other' });
      const keyFor = async (agent: string) =>
        (await gateway.call('POST', '/api/keys', { name: agent, agent })).body.key as string;
      const send = (name: string, token: string) =>
        gateway.call('POST', `/a2a/agents/${name}/message:send`, { message: userMessage('x') }, token);
      const kofi = await keyFor('kofi');
      const refused = await send('facade', kofi);
      expect([refused.status, JSON.stringify(refused.body)]).toEqual([
        422,
        expect.stringContaining('agent \\"kofi\\" may not send messages to itself'),
      ]);
      expect(stub.requests).toEqual([]);
      expect(await gateway.sql(`select from a2a_tasks where agent_name = 'facade'`)).toEqual([]);
      expect((await send('other', kofi)).status).toBe(200);
      expect((await send('facade', gateway.token)).status).toBe(200);

      await publish(gateway, { name: 'mirror', handle: 'looking-glass' });
      const elsewhere = await startStubAgent({ name: 'elsewhere', endpoint: `${gateway.url}/a2a/agents/mirror` });
      stubs.push(elsewhere);
      const doors = {
        reflection: `${gateway.url}/a2a/agents/mirror`,
        encoded: `${gateway.url}/a2a/agents/mir%72or?x=1`,
        elsewhere: elsewhere.url,
      };
      for (const [slug, url] of Object.entries(doors)) {
        const { status, body } = await gateway.call('POST', '/api/a2a/agents', { url, slug });
        expect([status, body.detail]).toEqual([201, undefined]);
        expect([slug, (await send('mirror', await keyFor(slug))).status]).toEqual([slug, 422]);
      }
    } finally {
      for (const one of stubs) await one.close();
    }
  });
});
