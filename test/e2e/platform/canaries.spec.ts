import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { rowsOf } from '../../support/gateway/dump.js';
import { eventually } from '../../support/gateway/eventually.js';
import { freePort } from '../../support/gateway/services.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { failed, multi } from '../../support/stubs/stub-behaviours.js';
import { Refusal, TestUpstream } from '../../support/stubs/upstream.js';

const program = join(process.cwd(), 'test', 'support', 'stubs', 'stdio-upstream.mjs');

/**
 * Starts a server that returns everything that it receives: as a failure when the path says so, and with a token for
 * token requests.
 */
async function startMirror(token: string): Promise<{ url: string; seen: string[]; server: Server }> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    void textOf(request).then((body) => {
      const mirrored = JSON.stringify({ url: request.url, headers: request.headers, body });
      seen.push(mirrored);
      const status = request.url!.includes('/fails') ? 500 : 200;
      response.writeHead(status, { 'content-type': 'application/json' });
      if (request.url!.includes('/token')) return response.end(JSON.stringify({ access_token: token, said: mirrored }));
      if (request.url!.includes('/chat')) {
        const choices = [{ message: { content: mirrored }, finish_reason: 'stop' }];
        return response.end(JSON.stringify({ choices }));
      }
      if (!request.url!.includes('/work')) return response.end(mirrored);
      return response.end(JSON.stringify({ events: [{ id: 'a', type: 'complete', text: mirrored }] }));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, server };
}

async function textOf(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}

describe('abuse 45 every credential, also when a server returns it', () => {
  const canaries: Record<string, string> = {};
  const canary = (name: string): string => (canaries[name] = `canary-${name}-${randomBytes(9).toString('base64url')}`);
  /** All texts that others may see: answers, lists, the export, the metrics. */
  const collected: string[] = [];
  let gateway: TestGateway;
  let member: string;
  let agent: StubAgent;
  let upstream: TestUpstream;
  let mirror: Awaited<ReturnType<typeof startMirror>>;

  beforeAll(async () => {
    gateway = await startTestGateway({
      METRICS_PORT: String(await freePort()),
      RIALTO_ADMIN_PASSWORD: canary('password-of-the-operator'),
    });
    member = await gateway.tokenOf('default', 'mia', 'member');
    mirror = await startMirror(canary('access-token'));
    agent = await startStubAgent({ name: 'Mirror' });
    agent.set((call) => {
      const mirrored = JSON.stringify(call.request.headers);
      const isRefused = call.request.rawBody.includes('fail');
      return isRefused
        ? failed(mirrored)(call)
        : multi([{ text: mirrored }, { data: { [mirrored]: [mirrored] } }])(call);
    });
    upstream = await TestUpstream.start();
    upstream.add('tell', () => ({
      content: [{ type: 'text', text: JSON.stringify([upstream.seen.at(-1), upstream.paths.at(-1)]) }],
      structuredContent: { seen: upstream.seen.at(-1), path: upstream.paths.at(-1) },
    }));
    upstream.add('refuse', () => {
      throw new Refusal(-32_000, JSON.stringify(upstream.seen.at(-1)), { path: upstream.paths.at(-1) });
    });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([agent.close(), upstream.close()]);
    await new Promise((resolve) => mirror.server.close(resolve));
  });

  const collect = async (answer: Promise<unknown>): Promise<void> => void collected.push(JSON.stringify(await answer));
  const tool = (name: string, args: object = {}) =>
    collect(gateway.rpc('tools/call', { name, arguments: args }, member));
  const make = async (path: string, body: object, status = 201): Promise<any> => {
    const made = await gateway.call('POST', path, body);
    expect([path, made.status]).toEqual([path, status]);
    return made.body;
  };

  it('is sent to its own server', async () => {
    const change = (credential: object) => gateway.call('PATCH', '/api/a2a/agents/mirror', { credential });
    const cardQuery = `?key=${canary('card-query')}`;
    await make('/api/a2a/agents', {
      url: `${agent.cardUrl}${cardQuery}`,
      credential: { type: 'bearer', token: canary('agent-bearer') },
    });
    const calls = async (): Promise<void> => {
      await tool('mirror.work');
      await tool('mirror.work', { please: 'fail' });
    };
    await calls();
    await change({ type: 'apiKey', header: 'X-Key', value: canary('agent-key') });
    await calls();
    const tokenUrl = `${mirror.url}/token`;
    await change({ type: 'oauth2', tokenUrl, clientId: 'me', clientSecret: canary('client-secret') });
    await calls();
    await change({
      type: 'oauth2',
      tokenUrl: `${mirror.url}/token/fails`,
      clientId: 'me',
      clientSecret: canary('other-client'),
    });
    await calls();

    const query = `?api_key=${canary('server-query')}`;
    const headers = { Authorization: `Bearer ${canary('server-bearer')}`, 'X-Api-Key': canary('server-key') };
    await make('/api/mcp/servers', { id: 'web', url: `${upstream.url}${query}`, headers });
    for (const name of ['web__tell', 'web__refuse']) await tool(name);
    await make('/api/mcp/servers', { id: 'mine', url: upstream.url, userCredentials: 'required' });
    const mine = { headers: { Authorization: `Bearer ${canary('user-bearer')}` } };
    expect((await gateway.call('PUT', '/api/mcp/servers/mine/credential', mine, member)).status).toBe(200);
    for (const name of ['mine__tell', 'mine__refuse']) await tool(name);
    const env = { API_TOKEN: canary('program-env'), DB_PASSWORD: canary('program-password') };
    await make('/api/mcp/servers', { id: 'program', command: process.execPath, args: [program], env });
    for (const name of ['program__environment', 'program__spy']) await tool(name);

    await publish(gateway, { name: 'echo', executor: { kind: 'echo' } });
    for (const path of ['/hook', '/fails']) {
      const taskPushNotificationConfig = {
        url: `${mirror.url}${path}?key=${canary(`push-query${path.slice(1)}`)}`,
        token: canary(`push-token${path.slice(1)}`),
        authentication: { scheme: 'Bearer', credentials: canary(`push-bearer${path.slice(1)}`) },
      };
      const params = { message: userMessage('x'), configuration: { taskPushNotificationConfig } };
      await rpc(gateway, 'SendMessage', params, { agent: 'echo' });
      await eventually(
        () => mirror.seen,
        (seen) => seen.some((one) => one.includes(taskPushNotificationConfig.token)),
      );
    }
    canaries['webhook-secret'] = (await make('/api/webhooks/secrets', {}, 201)).secret;

    const http = await publish(gateway, {
      name: 'http',
      executor: { kind: 'http', url: `${mirror.url}/work?key=${canary('service-query')}` },
    });
    canaries['service-secret'] = http.secret;
    const llm = {
      kind: 'llm',
      url: `${mirror.url}/chat?key=${canary('model-query')}`,
      model: 'm',
      apiKey: canary('model-key'),
    };
    await publish(gateway, { name: 'llm', executor: llm });
    // An update of another field keeps the address and its query.
    for (const name of ['http', 'llm'])
      await collect(gateway.call('PATCH', `/api/a2a/published/${name}`, { description: 'Returns its request.' }));
    for (const name of ['http', 'llm'])
      await collect(rpc(gateway, 'SendMessage', { message: userMessage('x') }, { agent: name, token: member }));
    const order = mirror.seen.map((one) => /rx1\.[\w.-]+/.exec(one)?.[0]).find((token) => token !== undefined);
    canaries['execution-token'] = order!;
    const box = await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
    canaries['mailbox-secret'] = box.secret;
    const waits = { message: userMessage('x'), configuration: { returnImmediately: true } };
    await rpc(gateway, 'SendMessage', waits, { agent: 'box' });
    const lease = () => gateway.call('POST', '/api/mailbox/box/lease?waitMs=1000', undefined, box.secret);
    const { body } = await eventually(lease, ({ status }) => status === 200);
    canaries['lease-token'] = body.token;
    const event = { id: 'a', type: 'complete', text: `${body.token} ${box.secret}`, leaseEpoch: body.leaseEpoch };
    expect((await gateway.call('POST', `/api/executions/${body.task.id}/events`, event, body.token)).status).toBe(200);

    canaries['api-key'] = (await make('/api/keys', { name: 'k' })).key;
    await make('/api/orgs', { slug: 'acme' });
    canaries['org-secret'] = (await make('/api/orgs/acme/secret', {}, 201)).secret;
    canaries['global-secret'] = testSecret;
    canaries['token-of-a-caller'] = member;
    await gateway.call('GET', '/api/keys', undefined, canaries['api-key']);
    await gateway.call('GET', '/admin/queues/', undefined, null, {
      authorization: `Basic ${Buffer.from(`admin:${canaries['password-of-the-operator']}`).toString('base64')}`,
    });
    expect(Object.keys(canaries).length).toBeGreaterThanOrEqual(25);
    const sent = JSON.stringify([agent.requests, upstream.seen, upstream.paths, mirror.seen]);
    const ofServers = ['access-token', 'server-query', 'user-bearer'];
    const ofExecutors = ['service-query', 'model-query', 'model-key'];
    for (const name of ['agent-bearer', 'push-tokenfails', ...ofServers, ...ofExecutors])
      expect([name, sent.includes(canaries[name]!)]).toEqual([name, true]);
  });

  it('and is in no answer to others, row, job, log, metric or export', async () => {
    const lists = [
      '/api/a2a/agents',
      '/api/a2a/agents/mirror',
      '/api/a2a/published',
      '/api/a2a/tasks',
      '/api/a2a/dispatches',
      '/api/mcp/servers',
      '/api/mcp/tools',
      '/api/audit/events?limit=200',
      '/api/audit/decisions?limit=200',
      '/api/webhooks/deliveries',
      '/api/keys',
      '/api/orgs/default/export',
    ];
    for (const path of lists)
      for (const token of [gateway.token, member]) await collect(gateway.call('GET', path, undefined, token));
    const metrics = await (await fetch(`http://127.0.0.1:${gateway.gateway.metricsPort}/metrics`)).text();
    const environment = readFileSync('/proc/self/cmdline', 'latin1');
    const places = {
      collected: collected.join(),
      rows: await rowsOf(gateway),
      log: gateway.log.join(),
      metrics,
      environment,
    };
    const found = Object.entries(canaries).flatMap(([name, value]) =>
      [value, Buffer.from(value).toString('base64').replace(/=+$/, '').slice(0, -1)].flatMap((form) =>
        Object.entries(places)
          .filter(([, text]) => text.includes(form))
          .map(
            ([place, text]) =>
              `${name} in ${place}: ${text.slice(Math.max(0, text.indexOf(form) - 120), text.indexOf(form) + 60)}`,
          ),
      ),
    );
    expect(found).toEqual([]);
    expect(places.collected).toContain('[redacted]');
  });
});
