import { setTimeout as wait } from 'node:timers/promises';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { connectLegacySdk, connectSdk } from '../../support/clients/mcp-clients.js';
import { Refusal, TestUpstream, type UpstreamKind } from '../../support/stubs/upstream.js';

const kinds = ['sessions', 'sse', 'modern', 'websocket'] as const;
const transportOf = { sessions: 'streamable-http', sse: 'sse', modern: 'streamable-http', websocket: 'websocket' };

describe('MCP servers with per-user credentials', () => {
  let gateway: TestGateway;
  let ann: string;
  let bob: string;
  const open: TestUpstream[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
    [ann, bob] = [await gateway.tokenOf('default', 'ann'), await gateway.tokenOf('default', 'bob')];
  });
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  /** Starts a server that accepts only these users. */
  const start = async (kind: UpstreamKind = 'sessions', known = ['ann', 'bob']): Promise<TestUpstream> => {
    const one = await TestUpstream.start(kind);
    one.admits = ({ authorization }) => known.some((name) => authorization === `Bearer canary-${name}`);
    open.push(one);
    return one;
  };
  const register = (one: TestUpstream, more: object = {}) =>
    gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url, userCredentials: 'required', ...more });
  const at = '/api/mcp/servers/own/credential';
  const give = (token: string, value: string, over = gateway) =>
    over.call('PUT', at, { headers: { Authorization: `Bearer canary-${value}` } }, token);
  const names = async (token: string, over = gateway) =>
    ((await over.rpc('tools/list', {}, token)).result.tools as { name: string }[])
      .map(({ name }) => name)
      .filter((name) => name.startsWith('own__'));
  const call = (token: string, over = gateway, name = 'own__echo') =>
    over.rpc('tools/call', { name, arguments: { text: 'x' } }, token);

  it.each(kinds)('are called with the credential of each user, and with no other: %s', async (kind) => {
    const one = await start(kind);
    expect(await register(one, { transport: transportOf[kind] })).toMatchObject({
      status: 201,
      body: { userCredentials: 'required', userHeaders: ['Authorization'], tools: [], status: 'disconnected' },
    });
    expect(one.seen).toEqual([]);
    expect([await names(ann), await names(bob)]).toEqual([[], []]);
    expect(await give(ann, 'ann')).toMatchObject({ status: 200, body: { server: 'own', since: expect.any(String) } });
    expect([await names(ann), await names(bob)]).toEqual([['own__echo'], []]);
    expect((await call(ann)).result.content[0].text).toBe('x');
    const callsOfAnn = one.calls.length;
    expect((await call(bob)).error).toMatchObject({
      code: -32205,
      message: expect.stringContaining(`PUT ${at}`),
      data: { code: 'credential_required', server: 'own', credential: at, headers: ['Authorization'] },
    });
    expect(one.calls).toHaveLength(callsOfAnn);
    await give(bob, 'bob');
    await Promise.all(Array.from({ length: 20 }, (_, n) => call(n % 2 ? ann : bob)));
    const seen = new Set(one.seen.map(({ authorization }) => authorization));
    expect([...seen].sort()).toEqual(['Bearer canary-ann', 'Bearer canary-bob']);
  });

  it.each(kinds)('X2.6 reveal the credential of a user to no caller, audit or log: %s', async (kind) => {
    const one = await start(kind);
    const canary = 'canary-ann';
    one.add('refuses', () => {
      throw new Refusal(-32_000, `bad key Bearer ${canary}`, { got: [canary], [canary]: 1 });
    });
    one.add('answers', () => ({
      content: [{ type: 'text', text: `you are ${canary}, ${Buffer.from(canary).toString('base64url')}` }],
      structuredContent: { got: { [canary]: [canary] } },
    }));
    await register(one, { transport: transportOf[kind] });
    await give(ann, 'ann');
    const refused = await call(ann, gateway, 'own__refuses');
    expect(refused.error).toMatchObject({
      code: -32_000,
      message: expect.stringMatching(/bad key \[redacted\]$/),
      data: { got: ['[redacted]'] },
    });
    const answered = await call(ann, gateway, 'own__answers');
    expect(answered.result.content).toEqual([{ type: 'text', text: 'you are [redacted], [redacted]' }]);
    const events = await gateway.call('GET', '/api/audit/events?type=mcp_call', undefined, bob);
    const audited = await gateway.sql('select event from audit_events');
    for (const visible of [refused, answered, events, audited, gateway.log]) {
      expect(JSON.stringify(visible)).not.toContain(canary);
      expect(JSON.stringify(visible)).not.toContain(Buffer.from(canary).toString('base64url'));
    }
    expect(audited.length).toBeGreaterThan(0);
  });

  it('have a connection for each user and each org, also when two users are the same to the server', async () => {
    const one = await start('sessions', ['same']);
    one.add('who', (_args, _signal, server) => ({ content: [{ type: 'text', text: idOf(server!) }] }));
    await register(one);
    await give(ann, 'same');
    await give(bob, 'same');
    const lines = await Promise.all([ann, bob, ann, bob].map((token) => call(token, gateway, 'own__who')));
    const [first, second, third, fourth] = lines.map(({ result }) => result.content[0].text as string);
    expect([first, second]).toEqual([third, fourth]);
    expect(first).not.toBe(second);
    const stranger = await gateway.tokenOf('acme', 'ann', 'admin');
    const body = { id: 'own', url: one.url, userCredentials: 'required' };
    await gateway.call('POST', '/api/mcp/servers', body, stranger);
    expect((await call(stranger)).error.data.code).toBe('credential_required');
    await gateway.call('DELETE', '/api/mcp/servers/own', undefined, stranger);
  });

  it('list to each user the tools for that user', async () => {
    const one = await start();
    const toolsOf = (name: string) => {
      one.tools.delete('of-ann');
      one.tools.delete('of-bob');
      one.add(`of-${name}`, () => ({ content: [] }));
    };
    await register(one);
    toolsOf('ann');
    await give(ann, 'ann');
    toolsOf('bob');
    await give(bob, 'bob');
    expect(await names(ann)).toEqual(['own__echo', 'own__of-ann']);
    expect(await names(bob)).toEqual(['own__echo', 'own__of-bob']);
    const own = async (token: string) =>
      (await gateway.call('GET', '/api/mcp/servers/own', undefined, token)).body.tools.map(({ name }: any) => name);
    expect([await own(ann), await own(bob), await own(gateway.token)]).toEqual([
      ['echo', 'of-ann'],
      ['echo', 'of-bob'],
      [],
    ]);
    const desk = await gateway.call('GET', '/api/mcp/tools?server=own', undefined, bob);
    expect(desk.body.items.map(({ own: name }: any) => name)).toEqual(['echo', 'of-bob']);
    expect((await call(bob, gateway, 'own__of-ann')).error).toMatchObject({ code: -32602 });
    const alone = await gateway.rpc('tools/list', {}, ann, '/mcp/servers/own');
    expect(alone.result.tools.map(({ name }: any) => name)).toEqual(['echo', 'of-ann']);
    const none = await connectSdk(`${gateway.url}/mcp/servers/own`, gateway.token, 'pinned');
    expect((await none.listTools()).tools).toEqual([]);
    expect(none.client.getInstructions()).toContain(`PUT ${at}`);
    await none.close();
  });

  it('close the connection of a removed or replaced credential, at once and in every process', async () => {
    const one = await start('websocket');
    const other = await startTestGateway({}, gateway);
    try {
      await register(one, { transport: 'websocket' });
      await give(ann, 'ann');
      await give(bob, 'bob');
      for (const process of [gateway, other]) for (const token of [ann, bob]) await call(token, process);
      await eventually(
        () => one.connections,
        (count) => count === 4,
      );
      let begun = (): void => undefined;
      const started = new Promise<void>((resolve) => (begun = resolve));
      one.add('slow', () => (begun(), new Promise(() => undefined)));
      await give(ann, 'ann');
      await eventually(
        () => one.connections,
        (count) => count === 2,
      );
      const slow = call(ann, other, 'own__slow');
      await started;
      expect((await gateway.call('DELETE', at, undefined, ann)).status).toBe(204);
      expect((await slow).error.data.code).toBe('unavailable');
      await eventually(
        () => one.connections,
        (count) => count === 2,
      );
      for (const process of [gateway, other]) {
        expect((await call(ann, process)).error.data.code).toBe('credential_required');
        expect(await names(ann, process)).toEqual([]);
        expect((await call(bob, process)).result.content[0].text).toBe('x');
      }
      expect(one.connections).toBe(2);
    } finally {
      await other.close();
    }
  });

  it('refuse a credential: a new one is not stored, an expired one is reported with what to do', async () => {
    const one = await start();
    await register(one);
    expect(await give(ann, 'wrong')).toMatchObject({
      status: 422,
      body: { code: 'credential_refused', detail: expect.not.stringContaining('canary') },
    });
    expect((await gateway.call('GET', at, undefined, ann)).body.since).toBeNull();
    await give(ann, 'ann');
    await call(ann);
    one.admits = () => false;
    for (let again = 0; again < 2; again++)
      expect((await call(ann)).error).toMatchObject({
        code: -32206,
        data: { code: 'credential_refused', server: 'own', hint: expect.stringContaining(`PUT ${at}`) },
      });
  });

  it('have rules: other headers, servers without user credentials, and callers without token are refused', async () => {
    const one = await start();
    one.admits = (headers) => headers['x-key'] === 'k' && headers['x-shared'] === 's' && headers['x-user'] === 'u';
    const userHeaders = ['X-Key', 'x-user'];
    await register(one, { userHeaders, headers: { 'x-shared': 's', 'X-USER': 'everybody' } });
    const put = (headers: object, id = 'own') =>
      gateway.call('PUT', `/api/mcp/servers/${id}/credential`, { headers }, ann);
    expect((await put({ 'X-Key': 'k', Cookie: 'c' })).body).toMatchObject({
      code: 'invalid_params',
      violations: [
        { field: 'headers.x-user', description: 'is required' },
        { field: 'headers.cookie', description: 'is not a header that users may set for this MCP server' },
      ],
    });
    expect((await put({ 'x-key': 'k', 'X-User': 'u' })).status).toBe(200);
    expect((await call(ann)).result.content[0].text).toBe('x');
    expect(new Set(one.seen.slice(-1).map((headers) => headers['x-user']))).toEqual(new Set(['u']));
    const shared = await TestUpstream.start();
    open.push(shared);
    await gateway.call('POST', '/api/mcp/servers', { id: 'shared', url: shared.url });
    expect((await put({ Authorization: 'x' }, 'shared')).body.code).toBe('unprocessable');
    const program = { id: 'program', command: process.execPath, args: ['-e', ''], userCredentials: 'required' };
    expect((await gateway.call('POST', '/api/mcp/servers', program)).body).toMatchObject({
      code: 'invalid_params',
      violations: [{ field: 'userCredentials', description: 'is not for a program' }],
    });
    const reserved = { id: 'reserved', url: one.url, userCredentials: 'required', userHeaders: ['Mcp-Session-Id'] };
    expect((await gateway.call('POST', '/api/mcp/servers', reserved)).status).toBe(400);
  });

  it('with optional credentials serve users without one by the shared connection, others by their own', async () => {
    const one = await start('modern', ['all', 'ann']);
    const shared = { userCredentials: 'optional', headers: { authorization: 'Bearer canary-all' } };
    expect((await register(one, shared)).body.tools).toHaveLength(1);
    await give(ann, 'ann');
    one.seen.length = 0;
    await call(bob);
    expect(one.seen.every(({ authorization }) => authorization === 'Bearer canary-all')).toBe(true);
    one.seen.length = 0;
    await call(ann);
    expect(one.seen.some(({ authorization }) => authorization === 'Bearer canary-ann')).toBe(true);
    expect(one.seen.at(-1)!.authorization).toBe('Bearer canary-ann');
  });

  it('send a credential only to the address for which it was given, also when their registration changes', async () => {
    const [one, thief] = [await start(), await start()];
    thief.admits = () => true;
    await register(one);
    await give(ann, 'ann');
    await call(ann);
    await gateway.call('PATCH', '/api/mcp/servers/own', { url: thief.url });
    expect((await call(ann)).error.data.code).toBe('credential_required');
    expect((await gateway.call('GET', at, undefined, ann)).body.since).toBeNull();
    await wait(300);
    expect(thief.seen).toEqual([]);
    await gateway.call('PATCH', '/api/mcp/servers/own', { url: one.url, userHeaders: ['X-Key'] });
    expect((await call(ann)).error.data.code).toBe('credential_required');
  });

  it('show admins which users have one, and admins can remove it; others cannot', async () => {
    const one = await start();
    await register(one);
    await give(ann, 'ann');
    await give(bob, 'bob');
    const list = '/api/mcp/servers/own/credentials';
    expect((await gateway.call('GET', list, undefined, ann)).status).toBe(403);
    const first = await gateway.call('GET', `${list}?limit=1`);
    expect(first.body.items).toMatchObject([{ principal: { kind: 'user', id: 'ann' }, since: expect.any(String) }]);
    const { body } = await gateway.call('GET', `${list}?cursor=${encodeURIComponent(first.body.nextCursor)}`);
    expect(body.items).toMatchObject([{ principal: { kind: 'user', id: 'bob' } }]);
    expect((await gateway.call('DELETE', `${list}/${body.items[0].id}`, undefined, ann)).status).toBe(403);
    expect((await gateway.call('DELETE', `${list}/${body.items[0].id}`)).status).toBe(204);
    expect((await gateway.call('DELETE', `${list}/none`)).status).toBe(404);
    expect((await call(bob)).error.data.code).toBe('credential_required');
    expect((await call(ann)).result.content[0].text).toBe('x');
    const forbid =
      'forbid(principal == User::"ann", action, resource in McpServer::"own") when { context.surface == "rest" };';
    const { body: policy } = await gateway.call('POST', '/api/policies', { name: 'no own', text: forbid });
    expect((await give(ann, 'ann')).status).toBe(403);
    await gateway.call('DELETE', `/api/policies/${policy.id}`);
    await gateway.call('DELETE', '/api/mcp/servers/own');
    expect(await gateway.sql('select 1 from mcp_user_credentials')).toEqual([]);
  });

  it('seal credentials for user, server and origin; values are in no answer, log, event, job or row', async () => {
    const one = await start();
    await register(one);
    const all = [await give(ann, 'ann'), await give(bob, 'bob'), await give(ann, 'wrong'), await call(ann)];
    one.admits = () => false;
    all.push(await call(ann), await gateway.call('GET', at, undefined, ann));
    for (const path of ['', '/own', '/own/credentials']) all.push(await gateway.call('GET', `/api/mcp/servers${path}`));
    for (const path of ['/api/audit/events', '/api/audit/decisions', '/api/orgs/default/export'])
      all.push(await gateway.call('GET', path));
    const tables = await gateway.sql(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    for (const { name } of tables) all.push((await gateway.sql<any>(`select t::text as text from ${name} t`)) as any);
    expect(JSON.stringify(all)).toContain('mcp.credential.set');
    expect(JSON.stringify(all) + gateway.log.join()).not.toContain('canary');
    one.admits = () => true;
    const swap = `update mcp_user_credentials c set sealed = o.sealed, revision = c.revision + 1
      from mcp_user_credentials o where c.caller = 'user:bob' and o.caller = 'user:ann'`;
    await gateway.sql(swap);
    await gateway.call('POST', '/api/mcp/servers/own/refresh');
    one.seen.length = 0;
    await wait(1_100);
    expect((await call(bob)).error).toBeDefined();
    expect(one.seen).toEqual([]);
  });

  it('are called by a published agent with the credential of the sender', async () => {
    const one = await start();
    one.add('add', ({ a }) => ({ content: [{ type: 'text', text: `${String(a)}!` }] }), {
      inputSchema: { type: 'object', properties: { a: { type: 'number' } } },
    });
    await register(one);
    await give(ann, 'ann');
    await publish(gateway, { name: 'adder', executor: { kind: 'mcp-tool', serverId: 'own', tool: 'add' } });
    const send = async (token: string) => {
      const message = userMessage('x', { parts: [{ data: { a: 1 } }] });
      return (await rpc(gateway, 'SendMessage', { message }, { agent: 'adder', token })).task;
    };
    expect(await send(ann)).toMatchObject({ artifacts: [{ parts: [{ text: '1!' }] }] });
    expect(await send(bob)).toMatchObject({
      status: { state: 'TASK_STATE_FAILED', message: { metadata: { errorCode: 'credential_required' } } },
    });
    expect(one.calls).toHaveLength(1);
    expect(new Set(one.seen.map(({ authorization }) => authorization))).toEqual(new Set(['Bearer canary-ann']));
  });

  it('notify changes for a user only to clients of that user, and ask only those', async () => {
    const one = await start();
    one.capabilities.resources = { subscribe: true };
    one.methods.set('resources/list', () => ({ resources: [{ uri: 'test://r', name: 'r' }] }));
    one.methods.set('resources/templates/list', () => ({ resourceTemplates: [] }));
    one.methods.set('resources/subscribe', () => ({}));
    one.add('touch', async (_args, _signal, server) => {
      await server!.notification({ method: 'notifications/resources/updated', params: { uri: 'test://r' } });
      return { content: [] };
    });
    one.add('ask', async (_args, _signal, server) => {
      const content = { type: 'text' as const, text: 'who?' };
      await server!.createMessage({ messages: [{ role: 'user', content }], maxTokens: 1 });
      return { content: [] };
    });
    await register(one);
    const connect = async (token: string) => {
      const events: string[] = [];
      const legacy = await connectLegacySdk(`${gateway.url}/mcp`, token);
      legacy.client.fallbackNotificationHandler = ({ method }) => Promise.resolve(void events.push(method));
      await legacy.standing;
      const modern = await connectSdk(`${gateway.url}/mcp`, token, 'pinned');
      modern.client.fallbackNotificationHandler = ({ method }) => Promise.resolve(void events.push(`modern ${method}`));
      const asking = await connectSdk(`${gateway.url}/mcp`, token, 'legacy', { capabilities: { sampling: {} } });
      asking.client.setRequestHandler('sampling/createMessage', () => {
        events.push('asked');
        return { role: 'assistant', content: { type: 'text', text: 'me' }, model: 'm' };
      });
      return { events, legacy, modern, asking, close: () => [legacy, modern, asking].map((each) => each.close()) };
    };
    const [anns, bobs] = [await connect(ann), await connect(bob)];
    const listChanged = ['notifications/tools/list_changed', 'modern notifications/tools/list_changed'];
    for (const { modern } of [anns, bobs]) await modern.client.listen({ toolsListChanged: true });
    await give(ann, 'ann');
    await eventually(
      () => anns.events,
      (all) => listChanged.every((method) => all.includes(method)),
    );
    expect(bobs.events).toEqual([]);
    await give(bob, 'bob');
    for (const { legacy, modern } of [anns, bobs]) {
      await legacy.client.subscribeResource({ uri: 'test://r' });
      await modern.client.listen({ resourceSubscriptions: ['test://r'] });
    }
    const updated = ['notifications/resources/updated', 'modern notifications/resources/updated'];
    await eventually(
      async () => (await call(ann, gateway, 'own__touch'), anns.events),
      (all) => updated.every((method) => all.includes(method)),
    );
    await anns.asking.callTool({ name: 'own__ask', arguments: {} });
    expect(anns.events).toContain('asked');
    await wait(200);
    expect(bobs.events.filter((method) => updated.includes(method) || method === 'asked')).toEqual([]);
    await Promise.all([anns, bobs].flatMap(({ close }) => close()));
  });
});

function idOf(server: object): string {
  const known = ids.get(server) ?? String(++count);
  ids.set(server, known);
  return known;
}
const ids = new WeakMap<object, string>();
let count = 0;
