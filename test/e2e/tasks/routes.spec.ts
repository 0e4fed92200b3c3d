import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { publish, rpc, rpcStream, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { ask, data } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const cardPath = '/a2a/agents/desk/.well-known/agent-card.json';

describe('RY-46 an agent with routes', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  let remote: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway();
    upstream = await TestUpstream.start();
    const inputSchema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
    upstream.add('refund', () => ({ content: [{ type: 'text', text: 'refunded' }] }), { inputSchema });
    await gateway.call('POST', '/api/mcp/servers', { id: 'bank', url: upstream.url });
    remote = await startStubAgent({ name: 'Travel', behaviour: data({ booked: true }) });
    await gateway.call('POST', '/api/a2a/agents', { url: remote.url, slug: 'travel' });
    await publish(gateway, {
      name: 'desk',
      skills: [{ id: 'chat', name: 'chat', description: 'Talks.', tags: [] }],
      executor: {
        kind: 'routes',
        routes: [
          { when: ['refund', 'money back'], executor: { kind: 'mcp-tool', serverId: 'bank', tool: 'refund' } },
          { when: ['flight'], executor: { kind: 'remote', agentId: 'travel' } },
          { when: ['question'], executor: { kind: 'echo', ask: 'Which one?' } },
        ],
        otherwise: { kind: 'echo' },
      },
    });
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
    await remote.close();
  });

  const card = async () => JSON.stringify((await gateway.call('GET', cardPath)).body);
  const send = async (text: string, more: object = {}) =>
    (await rpc(gateway, 'SendMessage', { message: userMessage(text, { ...more }) }, { agent: 'desk' })).task;

  it('takes two routes for two messages to one skill; the card is unchanged and names none', async () => {
    const before = await card();
    expect(JSON.parse(before).skills.map(({ id }: { id: string }) => id)).toEqual(['chat']);
    const refund = await send('I want my MONEY back!', { metadata: { skillId: 'chat' } });
    expect([refund.status.state, JSON.stringify(refund.artifacts)]).toEqual([
      'TASK_STATE_COMPLETED',
      expect.stringContaining('refunded'),
    ]);
    expect(upstream.calls.map(({ name }) => name)).toEqual(['refund']);
    const flight = await send('Book a flight', { metadata: { skillId: 'chat' } });
    expect([flight.status.state, JSON.stringify(flight.artifacts)]).toEqual([
      'TASK_STATE_COMPLETED',
      expect.stringContaining('booked'),
    ]);
    expect(remote.requests.some(({ rawBody }) => rawBody.includes('Book a flight'))).toBe(true);
    expect((await send('hello')).status.message.parts).toEqual([{ text: 'hello' }]);
    expect(upstream.calls).toHaveLength(1);
    expect(await card()).toBe(before);
    expect(before).not.toMatch(/bank|travel|flight|routes/i);
  });

  it('keeps the route of a task for its later messages, in a stream as well', async () => {
    const asked = await send('a question');
    expect(asked.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const params = { message: userMessage('about my refund', { taskId: asked.id }) };
    const frames = await (await rpcStream(gateway, 'SendStreamingMessage', params, { agent: 'desk' })).rest();
    expect(frames.at(-1)!.data.result.statusUpdate.status).toMatchObject({
      state: 'TASK_STATE_COMPLETED',
      message: { parts: [{ text: 'about my refund' }] },
    });
    expect(upstream.calls).toHaveLength(1);
  });

  it('cancels the work of its route', async () => {
    remote.set(ask('When?'));
    const { id, status } = await send('another flight');
    expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    await rpc(gateway, 'CancelTask', { id }, { agent: 'desk' });
    const canceled = await rpc(gateway, 'GetTask', { id }, { agent: 'desk', headers: { 'a2a-version': '1.0' } });
    expect(canceled.status.state).toBe('TASK_STATE_CANCELED');
  });

  it.each([
    [
      'an unknown agent',
      { when: ['x'], executor: { kind: 'remote', agentId: 'absent' } },
      'executor.routes[0].executor.agentId',
    ],
    [
      'an unknown server',
      { when: ['x'], executor: { kind: 'mcp-tool', serverId: 'absent', tool: 't' } },
      'executor.routes[0].executor.serverId',
    ],
    ['an executor with a secret', { when: ['x'], executor: { kind: 'http', url: 'http://127.0.0.1:9' } }, 'executor'],
    [
      'routes in routes',
      { when: ['x'], executor: { kind: 'routes', routes: [], otherwise: { kind: 'echo' } } },
      'executor',
    ],
    ['no words', { when: [], executor: { kind: 'echo' } }, 'executor.routes.0.when'],
    ['a phrase without a letter', { when: ['!!'], executor: { kind: 'echo' } }, 'executor.routes.0.when.0'],
  ])('refuses %s, and stores nothing', async (_, route, field) => {
    const executor = { kind: 'routes', routes: [route], otherwise: { kind: 'echo' } };
    const body = { name: 'bad', description: 'x', executor, a2a_enabled: true };
    const answer = await gateway.call('POST', '/api/a2a/published', body);
    expect([400, 422]).toContain(answer.status);
    expect(answer.body.violations[0].field).toContain(field);
    expect((await gateway.call('GET', '/api/a2a/published/bad')).status).toBe(404);
  });
});

const profile = `
role: Talks.
skills: [{ id: chat }]
executor:
  kind: routes
  routes:
    - when: [invoice]
      executor: { kind: echo, ask: Which invoice? }
  otherwise: { kind: echo }
`;

it('RY-46 an agent of the folder has routes in its profile, and its card does not show them', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-routes-'));
  mkdirSync(join(folder, 'clerk'));
  writeFileSync(join(folder, 'clerk', 'profile.yaml'), profile);
  const gateway = await startTestGateway({ RIALTO_AGENTS_DIR: folder });
  const card = async () => (await gateway.call('GET', '/a2a/agents/clerk/.well-known/agent-card.json')).body;
  const before = await eventually(card, ({ skills }) => skills !== undefined);
  expect(before.skills.map(({ id }: { id: string }) => id)).toEqual(['chat']);
  const stateOf = async (text: string) =>
    (await rpc(gateway, 'SendMessage', { message: userMessage(text) }, { agent: 'clerk' })).task.status.state;
  expect(await stateOf('my invoice')).toBe('TASK_STATE_INPUT_REQUIRED');
  expect(await stateOf('hello')).toBe('TASK_STATE_COMPLETED');
  expect(await card()).toEqual(before);
  expect(JSON.stringify(before)).not.toMatch(/invoice|routes/);
  await gateway.close();
  rmSync(folder, { recursive: true });
});
