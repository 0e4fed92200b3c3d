import { once } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as wait } from 'node:timers/promises';
import { eventually } from '../../support/gateway/eventually.js';
import { connectLegacySdk, connectSdk, modernRequest } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { openEvents, type EventReader } from '../../support/clients/mcp-events.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const changed = 'notifications/tools/list_changed';
const accept = { accept: 'text/event-stream' };

describe('MCP: tools/list_changed', () => {
  let one: TestGateway;
  let two: TestGateway;
  let agent: StubAgent;
  let agentId: string;
  let count = 0;
  const open: EventReader[] = [];
  let newest: ReturnType<typeof connectSdk> | undefined;

  beforeAll(async () => {
    one = await startTestGateway();
    two = await startTestGateway({}, one);
    agent = await startStubAgent({ name: 'Changing' });
    agentId = (await one.call('POST', '/api/a2a/agents', { url: agent.url })).body.id;
  });
  afterAll(async () => {
    open.forEach((reader) => reader.close());
    await two.close();
    await one.close();
    await agent.close();
  });

  /** Adds a skill to the agent and makes this process notice it. */
  const change = async (at: TestGateway) => {
    count += 1;
    (agent.card.skills as unknown[]).push({ id: `skill-${count}`, name: 'More', description: '', tags: [] });
    await at.call('POST', `/api/a2a/agents/${agentId}/refetch`, undefined, one.token);
  };
  const initialize = async (at: TestGateway, token = one.token) => {
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
    const { headers } = await at.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'initialize', params }, token);
    return { 'mcp-session-id': headers.get('mcp-session-id')! };
  };
  const standing = async (at: TestGateway, token = one.token) => {
    const session = await initialize(at, token);
    const reader = await openEvents(`${at.url}/mcp`, { headers: { ...accept, ...session }, token });
    open.push(reader);
    return { reader, session };
  };

  it.each(['its own', 'another'])('RE-43 a standing stream is notified of a change in %s process', async (where) => {
    const { reader } = await standing(one);
    await change(where === 'its own' ? one : two);
    expect(await reader.next()).toEqual({ jsonrpc: '2.0', method: changed });
  });

  it('a session with several streams is notified on one of them', async () => {
    const { reader: older, session } = await standing(one);
    const newer = await openEvents(`${one.url}/mcp`, { headers: { ...accept, ...session }, token: one.token });
    open.push(newer);
    await change(one);
    expect(await newer.next()).toEqual({ jsonrpc: '2.0', method: changed });
    newer.close();
    await eventually(
      async () => {
        await change(one);
        return Promise.race([older.next(), wait(500)]);
      },
      (message) => message !== undefined,
    );
  });

  it('RE-43 a subscriber of the newest revision is notified, in every process', async () => {
    const { headers, body } = modernRequest(
      'subscriptions/listen',
      { notifications: { toolsListChanged: true } },
      'sub',
    );
    const reader = await openEvents(`${one.url}/mcp`, { method: 'POST', headers, token: one.token, body });
    open.push(reader);
    expect(await reader.next()).toMatchObject({ method: 'notifications/subscriptions/acknowledged' });
    for (const at of [one, two]) {
      await change(at);
      expect(await reader.next()).toMatchObject({ method: changed });
    }
  });

  it('RE-43 the official clients are notified', async () => {
    const refreshed = new Promise<string[]>((resolve, reject) => {
      const onChanged = (error: Error | null, tools: { name: string }[] | null) =>
        error ? reject(error) : resolve((tools ?? []).map(({ name }) => name));
      newest = connectSdk(`${one.url}/mcp?names=canonical`, one.token, 'pinned', {
        listChanged: { tools: { onChanged, debounceMs: 1 } },
      });
    });
    const legacy = await connectLegacySdk(`${one.url}/mcp`, one.token);
    const notified = new Promise<void>((resolve) => {
      legacy.client.fallbackNotificationHandler = async ({ method }) => {
        if (method === changed) resolve();
      };
    });
    await Promise.all([newest, legacy.standing]);
    await change(two);
    await notified;
    expect(await refreshed).toContain(`changing.skill-${count}`);
    await Promise.all([legacy.close(), (await newest)?.close()]);
  });

  it('RE-43 D7 other changes of a list are notified too: names of the org, policies, health, removal', async () => {
    const { reader } = await standing(one);
    const said = async (): Promise<string> => {
      const { method } = await reader.next();
      return /resources|prompts/.test(method) ? said() : method;
    };
    await two.call('PATCH', '/api/orgs/default', { toolNames: 'both' }, one.token);
    expect(await said()).toBe(changed);
    const text = 'forbid(principal, action == Action::"a2a_discover", resource == A2AAgent::"changing");';
    const policy = await one.call('POST', '/api/policies', { name: 'hide', text });
    expect(await said()).toBe(changed);
    await one.call('DELETE', `/api/policies/${policy.body.id}`);
    expect(await said()).toBe(changed);
    await agent.down();
    await one.call('POST', `/api/a2a/agents/${agentId}/refetch`);
    expect(await said()).toBe(changed);
    await agent.up();
    await one.call('POST', `/api/a2a/agents/${agentId}/refetch`);
    expect(await said()).toBe(changed);
  });

  it('abuse 40 other orgs are not notified', async () => {
    const alice = await one.tokenOf('elsewhere', 'alice', 'admin');
    const foreign = await standing(one, alice);
    const own = await standing(one);
    await change(one);
    expect(await own.reader.next()).toEqual({ jsonrpc: '2.0', method: changed });
    await one.call('DELETE', '/mcp', undefined, alice, foreign.session);
    expect(await foreign.reader.rest()).toEqual([]);
  });

  it('a DELETE ends the streams of the session in every process', async () => {
    const here = await standing(one);
    const there = await openEvents(`${two.url}/mcp`, { headers: { ...accept, ...here.session }, token: one.token });
    expect(there.status).toBe(200);
    expect((await one.call('DELETE', '/mcp', undefined, one.token, here.session)).status).toBe(204);
    expect(await here.reader.rest()).toEqual([]);
    expect(await there.rest()).toEqual([]);
  });
});

describe('MCP: shutdown', () => {
  it('open streams of both eras do not delay a stop', async () => {
    const gateway = await startTestGateway();
    const legacy = await connectLegacySdk(`${gateway.url}/mcp`, gateway.token);
    await legacy.standing;
    const { headers, body } = modernRequest('subscriptions/listen', { notifications: { toolsListChanged: true } }, 's');
    const modern = await openEvents(`${gateway.url}/mcp`, { method: 'POST', headers, token: gateway.token, body });
    expect(await modern.next()).toMatchObject({ method: 'notifications/subscriptions/acknowledged' });
    await gateway.close();
    await modern.rest();
    await legacy.close();
  });

  it('a connection that was opened and never used does not delay it either', async () => {
    const gateway = await startTestGateway();
    const idle = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    await once(idle, 'connect');
    const ended = once(idle, 'close');
    await gateway.call('GET', '/livez');
    await gateway.close();
    await ended;
  });
});
