import { modernRequest } from '../../support/clients/mcp-clients.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

// Texts on the wire, because a JSON parser would round the numbers.
const ids = [
  '1',
  '-7',
  '"text"',
  '"9007199254740993"',
  '9007199254740991',
  '9007199254740992',
  '9007199254740993',
  '-12345678901234567890',
  '10000000000000000000',
];
const stream = 'application/json, text/event-stream';
const methods = {
  'tools/list': {},
  'tools/call': { name: 'list_agents', arguments: {} },
  'resources/list': {},
  'resources/templates/list': {},
  'resources/read': { uri: 'absent://x' },
  'prompts/list': {},
  'prompts/get': { name: 'absent' },
  'completion/complete': { ref: { type: 'ref/prompt', name: 'absent' }, argument: { name: 'a', value: 'b' } },
  'no/such-method': {},
};

/** Returns the first event of a stream, and leaves. */
async function firstEvent(answer: Response, then?: () => void): Promise<string> {
  let text = '';
  for await (const chunk of answer.body!) {
    text += Buffer.from(chunk as Uint8Array).toString();
    if (text.includes('data:')) break;
  }
  then?.();
  return text;
}

describe('MCP: ids of requests come back exactly as sent', () => {
  let gateway: TestGateway;
  let agent: StubAgent;

  beforeAll(async () => {
    gateway = await startTestGateway();
    agent = await startStubAgent({ name: 'Patient' });
    expect(await gateway.call('POST', '/api/a2a/agents', { url: agent.url })).toMatchObject({ status: 201 });
  });
  afterAll(async () => {
    await gateway.close();
    await agent.close();
  });

  /** Sends a body with JSON texts in the place of `ID` and `TOKEN`. */
  const send = async (headers: object, body: object, id: string, token = '1'): Promise<Response> =>
    fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${gateway.token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body).replaceAll('"ID"', id).replace('"TOKEN"', token),
    });
  const nameOf = ({ uri, taskId }: { uri?: string; taskId?: string }): object =>
    uri || taskId ? { 'mcp-name': uri ?? taskId } : {};
  const modern = (method: string, params: object) => {
    const { headers, body } = modernRequest(method, { ...params, _meta: { progressToken: 'TOKEN' } }, 'ID');
    return { headers: { ...headers, ...nameOf(params) }, body };
  };

  it.each(Object.entries({ ping: {}, ...methods }))('%s of the 2025 era', async (method, params) => {
    for (const id of [...ids, '1.5']) {
      const answer = await send({ accept: stream }, { jsonrpc: '2.0', id: 'ID', method, params }, id);
      expect(await answer.text()).toContain(`"id":${id},`);
    }
  });

  it('initialize and a batch of the 2025 era', async () => {
    const initialize = { jsonrpc: '2.0', id: 'ID', method: 'initialize', params: {} };
    for (const id of ids) {
      expect(await (await send({ accept: stream }, initialize, id)).text()).toContain(`"id":${id},`);
      const batch = [{ jsonrpc: '2.0', id: 'ID', method: 'ping' }, initialize];
      const text = await (await send({ accept: stream }, batch, id)).text();
      expect(text.split(`"id":${id},`)).toHaveLength(3);
    }
  });

  it.each(Object.entries({ 'server/discover': {}, 'tasks/get': { taskId: 'absent' }, ...methods }))(
    '%s of the 2026-07-28 revision',
    async (method, params) => {
      const { headers, body } = modern(method, params);
      for (const id of ids) {
        const text = await (await send(headers, body, id, id)).text();
        expect(text).toMatch(/"result"|"code":-32(601|602|002)/);
        expect(text).toMatch(new RegExp(`"id":${id}[,}]`));
      }
      expect(await (await send(headers, body, '1.5')).text()).toContain('"code":-32600');
    },
  );

  it('subscriptions and errors of transport of the 2026-07-28 revision', async () => {
    const { headers, body } = modern('subscriptions/listen', { notifications: { toolsListChanged: true } });
    for (const id of ids) {
      const answer = await send(headers, body, id);
      expect(await firstEvent(answer)).toContain(`"io.modelcontextprotocol/subscriptionId":${id}`);
      const other = { ...headers, 'mcp-method': 'tools/call' };
      expect(await (await send(other, body, id)).text()).toMatch(new RegExp(`"id":${id}[,}]`));
    }
  });

  it('progress tokens of the 2026-07-28 revision, also where the SDK serves the request', async () => {
    for (const more of [{}, { 'io.modelcontextprotocol/logLevel': 'info' }]) {
      let finish: () => void = () => undefined;
      const told = new Promise<void>((resolve) => (finish = resolve));
      agent.set(async (it) => {
        await told;
        await data({ ok: true })(it);
      });
      const params = { name: 'patient.work', arguments: {}, _meta: { progressToken: 'TOKEN', ...more } };
      const { headers, body } = modernRequest('tools/call', params, 'ID');
      const answer = await send(headers, body, '9007199254740993', '9007199254740995');
      expect(await firstEvent(answer, finish)).toContain('"progressToken":9007199254740995');
    }
  });
});
