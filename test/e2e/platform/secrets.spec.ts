import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { rowsOf } from '../../support/gateway/dump.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { bearer, data } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';
import { startWebhookSink } from '../../support/stubs/webhook-sink.js';

const path = '/api/a2a/agents';
const canaries = {
  bearer: 'canary-bearer-9f8e7d6c5b4a',
  apiKey: 'canary-apikey-1a2b3c4d5e6f',
  oauth: 'canary-oauth-0p9o8i7u6y5t',
};

describe('stored secrets', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let answers: string[];
  /** Secrets that are shown once to their creator, and never again. */
  const shownOnce: string[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ name: 'Guarded', behaviour: bearer(canaries.bearer, data({ ok: true })) });
  });

  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  const call = async (method: string, at: string, body?: unknown) => {
    const answer = await gateway.call(method, at, body);
    answers.push(JSON.stringify(answer.body), JSON.stringify([...answer.headers]));
    return answer;
  };

  it('abuse 45 46: are sealed, write-only, and in no answer, log or dump', async () => {
    answers = [];
    const { id } = (
      await call('POST', path, { url: agent.url, credential: { type: 'bearer', token: canaries.bearer } })
    ).body;
    expect((await call('GET', `${path}/${id}`)).body.credential).toEqual({ type: 'bearer', hint: '…5b4a' });
    expect((await gateway.rpc('tools/call', { name: 'guarded.work', arguments: {} })).error).toBeUndefined();
    const change = (credential: object) => call('PATCH', `${path}/${id}`, { credential });
    await change({ type: 'apiKey', header: 'X-Key', value: canaries.apiKey });
    await gateway.rpc('tools/call', { name: 'guarded.work', arguments: {} });
    expect(agent.requests.at(-1)!.headers['x-key']).toBe(canaries.apiKey);
    const tokenUrl = 'http://127.0.0.1:1/token';
    await change({ type: 'oauth2', tokenUrl, clientId: 'me', clientSecret: canaries.oauth });
    answers.push(JSON.stringify(await gateway.rpc('tools/call', { name: 'guarded.work', arguments: {} })));
    await change({ type: 'bearer', token: `${canaries.bearer}\n` });
    await call('POST', path, { url: 'http://127.0.0.1:1', credential: { type: 'bearer', token: canaries.bearer } });
    await call('POST', path, `{"url":"x","credential":{"type":"bearer","token":"${canaries.bearer}"`);
    for (const at of [
      path,
      `${path}/${id}`,
      `${path}/${id}/changes`,
      '/api/audit/events',
      '/api/audit/decisions',
      '/docs-json',
    ])
      await call('GET', at);
    shownOnce.push((await gateway.call('POST', '/api/keys', { name: 'k' })).body.key as string);
    await gateway.call('POST', '/api/orgs', { slug: 'acme' });
    shownOnce.push((await gateway.call('POST', '/api/orgs/acme/secret', {})).body.secret as string);
    await call('GET', '/api/keys');
    await call('GET', '/api/orgs');
    const dump = await rowsOf(gateway);
    expect(dump).toContain('v1.');
    const secrets = [...Object.values(canaries), ...shownOnce, testSecret, gateway.token];
    for (const secret of secrets) {
      for (const [place, text] of Object.entries({ answers: answers.join(), log: gateway.log.join(), dump }))
        expect({ place, found: text.includes(secret) }).toEqual({ place, found: false });
    }
  });

  it('abuse 46: no row and no log shows the query of an address; requests have the full address', async () => {
    const canary = 'canary-query-7f6e5d4c';
    const query = `?key=${canary}&b=%20&c`;
    const [upstream, sink] = [await TestUpstream.start(), await startWebhookSink()];
    const server = await gateway.call('POST', '/api/mcp/servers', { id: 'asked', url: `${upstream.url}${query}` });
    expect([server.status, server.body.url]).toEqual([201, upstream.url]);
    expect((await gateway.rpc('tools/call', { name: 'asked__echo', arguments: { text: 'x' } })).error).toBeUndefined();
    expect(new Set(upstream.paths)).toEqual(new Set([`/mcp${query}`]));
    await publish(gateway, { name: 'told', executor: { kind: 'echo' } });
    const taskPushNotificationConfig = { url: `${sink.url}/hook${query}`, token: 'token-of-the-hook' };
    const params = { message: userMessage('x'), configuration: { taskPushNotificationConfig } };
    const { task } = await rpc(gateway, 'SendMessage', params, { agent: 'told' });
    await eventually(
      () => sink.received.map(({ path: at }) => at),
      (paths) => paths.includes(`/hook${query}`),
    );
    const { configs } = await rpc(gateway, 'ListTaskPushNotificationConfigs', { taskId: task.id }, { agent: 'told' });
    expect(configs).toMatchObject([taskPushNotificationConfig]);
    expect((await gateway.call('PATCH', '/api/mcp/servers/asked', { name: 'Asked' })).body.url).toBe(upstream.url);
    expect((await gateway.rpc('tools/call', { name: 'asked__echo', arguments: { text: 'y' } })).error).toBeUndefined();
    for (const text of [await rowsOf(gateway), gateway.log.join()]) expect(text).not.toContain(canary);
    await Promise.all([upstream.close(), sink.close()]);
  });

  it('abuse 47: a sealed secret moved to another row or org does not open there, and no request is sent', async () => {
    const [one, two] = [await startStubAgent({ name: 'One' }), await startStubAgent({ name: 'Two' })];
    try {
      for (const stub of [one, two])
        await gateway.call('POST', path, {
          url: stub.url,
          credential: { type: 'bearer', token: `secret-of-${stub.url}` },
        });
      await gateway.sql(
        `update agent_cards
         set credential = (select credential from agent_cards where slug = 'one'), updated_at = clock_timestamp()
         where slug = 'two'`,
      );
      const refetch = await gateway.call('PATCH', `${path}/two`, { timeoutMs: 5_000 });
      expect(refetch.status).toBe(200);
      const { error } = await gateway.rpc('tools/call', { name: 'two.work', arguments: {} });
      expect(error).toBeDefined();
      expect(JSON.stringify(error)).not.toContain('secret-of');
      expect(two.requests.map(({ headers }) => headers.authorization ?? '').join()).not.toContain('secret-of');
      expect((await gateway.rpc('tools/call', { name: 'one.work', arguments: {} })).error).toBeUndefined();
    } finally {
      await Promise.all([one.close(), two.close()]);
    }
  });

  it('abuse 44: names from callers and agents cannot break a log line', async () => {
    const evil = await startStubAgent({ name: 'Evil\r\n{"level":"error","msg":"forged"}\u001b[31m' });
    await gateway.call('POST', path, { url: evil.url, slug: 'evil' });
    await evil.down();
    await gateway.call('POST', `${path}/evil/refetch`);
    await gateway.call('GET', `${path}/x%0d%0a{"msg":"forged"}`);
    await gateway.call('GET', path, undefined, 'x.y.z', { 'x-request-id': 'a{"msg":"forged"}' });
    for (const line of gateway.log) {
      expect(line.trimEnd()).not.toMatch(/\p{Cc}/u);
      expect((JSON.parse(line) as { msg: string }).msg).not.toBe('forged');
    }
    await evil.close();
  });
});
