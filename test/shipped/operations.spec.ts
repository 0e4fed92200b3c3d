import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { publish, rpc, rpcCall, userMessage } from '../support/clients/a2a.js';
import { eventually } from '../support/gateway/eventually.js';
import { signToken } from '../support/gateway/caller.js';
import { shipped } from '../support/checks/shipped.js';
import { startWebhookSink, type WebhookSink } from '../support/stubs/webhook-sink.js';

const gateway = shipped();
const { name, version } = JSON.parse(readFileSync(join(process.cwd(), 'package.json'), 'utf8')) as Record<
  string,
  string
>;

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  return { status: response.status, text: await response.text() };
}

describe('the shipped tree in operation', () => {
  let sink: WebhookSink;

  beforeAll(async () => {
    sink = await startWebhookSink();
    await publish(gateway, { name: 'works' });
  });
  afterAll(() => sink.close());

  it.each([
    ['api', gateway.url],
    ['worker', gateway.workerUrl],
  ])('%s lives, is ready and says its version', async (_role, url) => {
    expect(await get(`${url}/livez`)).toEqual({ status: 200, text: '{"status":"ok"}' });
    const ready = await get(`${url}/readyz`);
    expect([ready.status, JSON.parse(ready.text)]).toMatchObject([
      200,
      { status: 'ok', checks: { database: { status: 'ok' }, queue: { status: 'ok' }, schema: { status: 'ok' } } },
    ]);
    expect(JSON.parse((await get(`${url}/version`)).text)).toMatchObject({ name, version });
  });

  it('worker opens no other door', async () => {
    for (const path of ['/mcp', '/api/policies', '/a2a/agents/works/.well-known/agent-card.json', '/admin/queues'])
      expect((await get(`${gateway.workerUrl}${path}`, { authorization: `Bearer ${gateway.token}` })).status).toBe(404);
  });

  it.each(gateway.metricsUrls)('metrics are on a port of their own: %s', async (url) => {
    const { status, text } = await get(`${url}/metrics`);
    expect(status).toBe(200);
    expect(text).toMatch(/^rialto_\w+/m);
    expect((await get(`${gateway.url}/metrics`)).status).toBe(404);
  });

  const basic = (password: string) => ({
    authorization: `Basic ${Buffer.from(`admin:${password}`).toString('base64')}`,
  });

  /** Base URL of the links in a page. */
  const base = (page: string, path: string): string =>
    new URL(/<base href="([^"]+)"/.exec(page)?.[1] ?? path, gateway.url).href;

  it.each([
    ['/admin/queues', /src="([^"]+\.js)"/],
    ['/docs', /src="([^"]+bundle\.js)"/],
  ])('%s is for the operator alone, and comes with its scripts', async (path, script) => {
    expect((await get(`${gateway.url}${path}`)).status).toBe(401);
    expect((await get(`${gateway.url}${path}`, basic('not-the-password'))).status).toBe(401);
    const page = await get(`${gateway.url}${path}`, basic(gateway.adminPassword));
    expect(page.status).toBe(200);
    const [, address] = script.exec(page.text)!;
    const found = await get(new URL(address!, base(page.text, path)).href, basic(gateway.adminPassword));
    expect([found.status, found.text.length > 10_000]).toEqual([200, true]);
  });

  it('the queue board shows the queues', async () => {
    const { text } = await get(`${gateway.url}/admin/queues/api/queues`, basic(gateway.adminPassword));
    const queues = JSON.parse(text).queues.map((queue: { name: string }) => queue.name);
    expect(queues).toEqual(expect.arrayContaining(['task-execution', 'webhook-delivery']));
  });

  it('the worker posts the events of a task to a webhook', async () => {
    const taskPushNotificationConfig = { url: `${sink.url}/hook`, token: 'token-1' };
    const configuration = { returnImmediately: true, taskPushNotificationConfig };
    const { task } = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('posted'), configuration },
      { agent: 'works' },
    );
    const posts = await eventually(
      () => sink.received,
      (all) => all.some(({ body }) => body.statusUpdate?.status.state === 'TASK_STATE_COMPLETED'),
    );
    for (const { path, headers, body } of posts) {
      expect([path, headers['a2a-notification-token']]).toEqual(['/hook', 'token-1']);
      expect(JSON.stringify(body)).toContain(task.id);
    }
    const kinds = posts.map(({ body }) => Object.keys(body)[0]);
    expect(kinds).toEqual(expect.arrayContaining(['statusUpdate', 'artifactUpdate']));
  });

  // In an org of its own: a change of members ends the open streams of their org, and other specs read some.
  it('a production org permits nothing before its first policy, and a policy denies one member only', async () => {
    await gateway.tokenOf('globex', 'gina', 'admin');
    // In production the secret of the deployment makes no admins: one of the org does.
    const { secret } = (await gateway.call('POST', '/api/orgs/globex/secret', { graceSeconds: 0 })).body;
    const admin = await signToken({ sub: 'gina', org_domain: 'globex' }, secret);
    const [mallory, alice] = [await gateway.tokenOf('globex', 'mallory'), await gateway.tokenOf('globex', 'alice')];
    await publish(gateway, { name: 'works' }, admin);
    const store = async (title: string, text: string): Promise<void> => {
      const { status } = await gateway.call('POST', '/api/policies', { name: title, text }, admin);
      expect(status).toBe(201);
    };
    /** Sends until the answer has this status: a policy takes effect in a moment. */
    const sends = (token: string, expected: number) =>
      eventually(
        () => rpcCall(gateway, 'SendMessage', { message: userMessage('may I') }, { agent: 'works', token }),
        ({ status }) => status === expected,
      );
    expect((await sends(alice, 403)).body.error.message).toContain('no permit matched');
    await store('members', 'permit(principal, action, resource);');
    for (const member of [alice, mallory]) await sends(member, 200);
    await store('no-mallory', 'forbid(principal == User::"mallory", action == Action::"task_submit", resource);');
    expect((await sends(mallory, 403)).body.error.message).toContain('no-mallory');
    await sends(alice, 200);
  });
});
