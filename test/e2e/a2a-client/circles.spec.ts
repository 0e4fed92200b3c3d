import { publish, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { state, text } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const most = 3;
/** Calls that begin within 20 ms of each other count as one, and a round takes at least a millisecond. */
const mostRounds = most * 20;

// X3.4: these partners forward each call with their own key and without the lineage header.
describe('abuse 37 a circle with a partner that drops the lineage ends', () => {
  let gateway: TestGateway;
  let other: string;
  let partner: StubAgent;
  let server: TestUpstream;
  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_MAX_NESTED_CALLS: String(most) });
    other = await gateway.tokenOf('default', 'other', 'admin');
    partner = await startStubAgent({ card: 'v03', name: 'Partner', behaviour: text('never asked') });
    await gateway.call('POST', '/api/a2a/agents', { url: partner.url, slug: 'partner' });
    await publish(gateway, { name: 'front', executor: { kind: 'remote', agentId: 'partner' } });
    server = await TestUpstream.start();
    await gateway.call('POST', '/api/mcp/servers', { id: 'tools', url: server.url });
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([partner.close(), server.close()]);
  });
  beforeEach(() => {
    partner.requests.length = 0;
  });

  const rpc = (path: string, method: string, params: object, token = gateway.token) =>
    gateway.call('POST', path, { jsonrpc: '2.0', id: 1, method, params }, token);
  const tool = (name: string, token?: string) => rpc('/mcp', 'tools/call', { name, arguments: {} }, token);
  const send = (configuration: object = {}, token?: string) =>
    rpc('/a2a/agents/front', 'SendMessage', { message: userMessage('on'), configuration }, token);

  /** Makes the partner start `call` for every request, and stores the first answer, which ended the circle. */
  function forwards(call: () => Promise<{ body: unknown }>): { rounds: number; last: () => string } {
    let last = '';
    const circle = { rounds: 0, last: () => last };
    partner.set(async (request) => {
      circle.rounds++;
      // An endless circle is ended here, so that the test fails instead of the machine.
      if (circle.rounds > mostRounds * 2) return text('too far')(request);
      const answer = JSON.stringify((await call()).body);
      last ||= answer;
      await text('done')(request);
    });
    return circle;
  }

  it('of calls of a registered agent, without an effect on other callers', async () => {
    const answers: string[] = [];
    const circle = forwards(async () => {
      const answer = await tool('partner.work');
      answers.push(JSON.stringify(answer.body));
      if (answers.length === 1) answers.push((await tool('tools__echo', other)).status.toString());
      return answer;
    });
    const { body } = await tool('partner.work');
    expect(JSON.stringify(body)).toContain('done');
    expect(circle.rounds).toBeLessThanOrEqual(mostRounds);
    expect(answers[0]).toMatch(/nested_calls/);
    expect(answers[1]).toBe('200');
    partner.set(text('free'));
    expect(JSON.stringify((await tool('partner.work')).body)).toContain('free');
  });

  it('of calls of a tool of an MCP server', async () => {
    let rounds = 0;
    const answers: string[] = [];
    server.add('again', async () => {
      rounds++;
      answers.push(JSON.stringify((await tool('tools__again')).body));
      return { content: [{ type: 'text', text: 'done' }] };
    });
    await eventually(
      async () => JSON.stringify((await rpc('/mcp', 'tools/list', {})).body),
      (list) => list.includes('tools__again'),
    );
    expect(JSON.stringify((await tool('tools__again')).body)).toContain('done');
    expect(rounds).toBeLessThanOrEqual(mostRounds);
    expect(answers[0]).toMatch(/nested_calls/);
  });

  it('of tasks of a published agent with a waiting caller', async () => {
    const circle = forwards(() => send());
    const { body } = await send();
    expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(circle.rounds).toBeLessThanOrEqual(mostRounds);
    expect(circle.last()).toMatch(/nested_calls/);
    expect((await send({}, other)).body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('of tasks without a waiting caller, later, because they may be a backlog', async () => {
    let rounds = 0;
    let refused = '';
    let broken = 0;
    partner.set(async (request) => {
      rounds++;
      const { body } = await send({ returnImmediately: true });
      if (body.error) refused = JSON.stringify(body);
      // No task ends before the circle does.
      await state('working')(request);
    });
    await send({ returnImmediately: true });
    await eventually(
      async () => {
        const { body } = await rpc('/a2a/agents/front', 'ListTasks', { status: 'TASK_STATE_FAILED', pageSize: 100 });
        const failed = body.result.tasks.map((task: { status: object }) => JSON.stringify(task.status));
        // A task that fails for another reason, e.g. a broken connection, ends the circle too; a new one goes on.
        if (failed.length > broken) {
          broken = failed.length;
          await send({ returnImmediately: true });
        }
        return { rounds, refused, failed };
      },
      (circle) => circle.refused !== '',
    );
    expect(refused).toMatch(/nested_calls/);
    expect(rounds).toBeGreaterThanOrEqual(most * 20);
  });
});
