import { randomBytes } from 'node:crypto';
import { sdkClient, sdkSend } from '../../support/clients/a2a-sdk.js';
import { openStream, publish, rpc, rpcStream } from '../../support/clients/a2a.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const say = (text: string) => ({
  message: { kind: 'message', messageId: `m-${Math.random()}`, role: 'user', parts: [{ kind: 'text', text }] },
});

describe('the doors that clients of Reyn use', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 400, chunks: 3 } });
  });
  afterAll(() => gateway.close());

  it('RY-41 message/stream and /events both show the same run, live and after it', async () => {
    const stream = await rpcStream(gateway, 'message/stream', say('one two three'), { agent: 'slow' });
    const first = await stream.next();
    const { id } = first!.data.result;
    const { url, token } = gateway;
    const live = await openStream(`${url}/a2a/tasks/${id}/events`, { method: 'GET', token });
    expect([stream.status, live.status]).toEqual([200, 200]);
    const [frames, events] = await Promise.all([stream.rest(), live.rest()]);
    expect(frames.at(-1)!.data.result).toMatchObject({ final: true, status: { state: 'completed' } });
    expect(events.filter(({ data }) => data?.run_id).at(-1)!.data).toMatchObject({ run_id: id, status: 'completed' });
    expect(events.at(-1)!.event).toBe('end');
    const later = await openStream(`${url}/a2a/tasks/${id}/events`, { method: 'GET', token });
    expect((await later.rest()).at(-1)!.event).toBe('end');
    const again = await rpcStream(gateway, 'tasks/resubscribe', { id }, { agent: 'slow' });
    expect(again.status).toBe(200);
    await again.rest();
    const card = (await gateway.call('GET', '/a2a/agents/slow/.well-known/agent-card.json')).body;
    expect(card.capabilities.streaming).toBe(true);
  });

  it('RY-47 a foreign client finds an agent by its role in the index, reads its card and gets a reply', async () => {
    const { agents } = (await gateway.call('GET', '/a2a/agents')).body;
    const { name, agentCardUrl } = agents.find(({ role }: { role: string }) => role === 'Repeats the message.');
    const cardPath = new URL(agentCardUrl).pathname;
    const client = await sdkClient(gateway, { version: '1.0', binding: 'JSONRPC' }, { agent: name, cardPath });
    expect(JSON.stringify(await client.sendMessage(sdkSend('found by its role')))).toContain('found by its role');
    const { items } = (await gateway.call('GET', '/api/audit/events?type=task_submit&limit=1')).body;
    expect(items[0]).toMatchObject({ verb: name, outcome: 'completed' });
  });

  it('RY-42 every door of an agent wants a credential, unless development turns it off', async () => {
    const { id } = await rpc(gateway, 'message/send', say('x'));
    const doors: [string, string, object?][] = [
      ['POST', '/a2a/agents/echo', { jsonrpc: '2.0', id: 1, method: 'message/send', params: say('x') }],
      ['POST', '/a2a/agents/echo', { jsonrpc: '2.0', id: 1, method: 'message/stream', params: say('x') }],
      ['POST', '/a2a/agents/echo/v1/message:send', say('x')],
      ['POST', '/a2a/agents/echo/message:send', say('x')],
      ['GET', `/a2a/agents/echo/tasks/${id}`],
      ['GET', `/a2a/tasks/${id}`],
      ['GET', `/a2a/tasks/${id}/events`],
      ['POST', `/a2a/tasks/${id}/cancel`],
      ['POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/list', params: {} }],
    ];
    const countTasks = async (): Promise<number> =>
      (await gateway.sql('select count(*)::int as n from a2a_tasks where agent_name = $1', ['echo']))[0].n;
    const before = await countTasks();
    const forged = await signToken({ sub: 'bob' }, 'another-secret-of-at-least-32-bytes!');
    for (const token of [null, 'wrong', forged])
      for (const [method, path, body] of doors) {
        const { status, headers } = await gateway.call(method, path, body, token);
        expect([method, path, status, headers.get('www-authenticate')]).toEqual([
          method,
          path,
          401,
          expect.stringContaining('Bearer'),
        ]);
      }
    expect(await countTasks()).toBe(before);

    const open = await startTestGateway({ RIALTO_DEV_ANONYMOUS: 'true' }, gateway);
    const answer = await open.call('POST', '/a2a/agents/echo', doors[0]![2], null);
    expect(answer.body.result.status.state).toBe('completed');
    await open.close();
    const production = {
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      RIALTO_ENCRYPTION_KEY: randomBytes(32).toString('base64'),
      RIALTO_DEV_ANONYMOUS: 'true',
    };
    await expect(startTestGateway(production, gateway)).rejects.toThrow('RIALTO_DEV_ANONYMOUS is refused');
  });
});
