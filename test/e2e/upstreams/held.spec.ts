import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { startFixture } from '../../support/clients/mcp-fixture.js';
import { z } from 'zod';
import { TestUpstream } from '../../support/stubs/upstream.js';

const anything = z.looseObject({});
const sampled = { role: 'assistant', content: { type: 'text', text: 'Paris' }, model: 'm' };
const able = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} };

describe('C10 a client of the 2026-07-28 revision calls a server of the 2025 era that asks it a question', () => {
  let gateway: TestGateway;
  let other: TestGateway;
  const open: { close: () => Promise<void> }[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
    other = await startTestGateway({}, gateway);
  });
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    await Promise.all(open.splice(0).map((one) => one.close()));
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
  });
  afterAll(async () => {
    await other.close();
    await gateway.close();
  });

  const register = async (one: { url: string; close: () => Promise<void> }, id = 'fix') => {
    open.push(one);
    expect((await gateway.call('POST', '/api/mcp/servers', { id, url: one.url })).status).toBe(201);
  };
  const call = async (
    name: string,
    more: object = {},
    at: { url: string } = gateway,
    token = gateway.token,
    declared: object = able,
  ) => {
    const params = { name, arguments: { prompt: 'capital?', message: 'who?' }, ...more };
    const { headers, body } = modernRequest('tools/call', params, 1);
    const sent = body as any;
    sent.params._meta['io.modelcontextprotocol/clientCapabilities'] = declared;
    const response = await fetch(`${at.url}/mcp`, {
      method: 'POST',
      headers: {
        ...headers,
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify(sent),
    });
    return JSON.parse(/^(?:.*\n)*?data: (.*)\n/.exec(await response.clone().text())?.[1] ?? (await response.text()));
  };
  const answering = ({ result }: any, answer: object = sampled) => ({
    requestState: result.requestState,
    inputResponses: Object.fromEntries(Object.keys(result.inputRequests).map((name) => [name, answer])),
  });

  it('an SDK client gets the question as from a server of its own revision', async () => {
    await register(await startFixture('legacy'));
    const one = new Client(
      { name: 'c', version: '1' },
      { capabilities: able, versionNegotiation: { mode: { pin: '2026-07-28' } } },
    );
    one.setRequestHandler('sampling/createMessage', () => sampled as never);
    one.setRequestHandler(
      'elicitation/create',
      () => ({ action: 'accept', content: { username: 'ada', email: 'a@b.c' } }) as never,
    );
    const headers = { authorization: `Bearer ${gateway.token}` };
    await one.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers } }));
    open.push(one);
    const text = async (name: string, args: object) =>
      ((await one.callTool({ name, arguments: args as never })) as any).content[0].text;
    expect(await text('fix__test_sampling', { prompt: 'capital?' })).toBe('LLM response: Paris');
    expect(await text('fix__test_elicitation', { message: 'who?' })).toContain('"username":"ada"');
    expect(await text('fix__test_simple_text', {})).toContain('simple text');
  });

  it('the question is a result, the answer ends the call, and the call is made once', async () => {
    const one = await TestUpstream.start();
    const asked: unknown[] = [];
    one.add('twice', async (_args, _signal, server) => {
      for (const prompt of ['one', 'two'])
        asked.push(
          await server!.request(
            { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, prompt } },
            anything as never,
          ),
        );
      return { content: [{ type: 'text', text: 'done' }] };
    });
    await register(one);
    const first = await call('fix__twice');
    expect(first.result).toMatchObject({ resultType: 'input_required', requestState: expect.any(String) });
    expect(Object.values(first.result.inputRequests)).toEqual([
      { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, prompt: 'one' } },
    ]);
    const second = await call('fix__twice', answering(first));
    expect(second.result.resultType).toBe('input_required');
    const last = await call('fix__twice', answering(second));
    expect(last.result).toMatchObject({ resultType: 'complete', content: [{ text: 'done' }] });
    expect([asked.length, one.calls.length]).toEqual([2, 1]);
  });

  it('another caller, or another call, cannot continue it', async () => {
    await register(await startFixture('legacy'));
    const first = await call('fix__test_sampling');
    const stranger = await gateway.tokenOf('default', 'eve', 'admin');
    const refused = await call('fix__test_sampling', answering(first), gateway, stranger);
    expect(refused.error).toMatchObject({ code: -32602 });
    expect((await call('fix__test_elicitation', answering(first))).error).toMatchObject({ code: -32602 });
    expect((await call('fix__test_sampling', answering(first))).result.content[0].text).toBe('LLM response: Paris');
  });

  it('state that a server keeps in the session of one caller is not visible to the next', async () => {
    const one = await TestUpstream.start();
    const sessions = new Map<unknown, string>();
    one.add('login', async (_args, _signal, server) => {
      const params = { messages: [], maxTokens: 1 };
      const { content }: any = await server!.request({ method: 'sampling/createMessage', params }, anything as never);
      sessions.set(server, content.text);
      return { content: [] };
    });
    one.add('whoami', (_args, _signal, server) => ({
      content: [{ type: 'text', text: sessions.get(server) ?? 'nobody' }],
    }));
    await register(one);
    const [ann, bob] = [gateway.token, await gateway.tokenOf('default', 'bob')];
    const whoami = async (token: string) => (await call('fix__whoami', {}, gateway, token)).result.content[0].text;
    await call('fix__login', answering(await call('fix__login')));
    expect(await whoami(bob)).toBe('nobody');
    expect(await whoami(ann)).toBe('Paris');
  });

  it('an answer that arrives at another process continues the call, question after question', async () => {
    const one = await TestUpstream.start();
    one.add('twice', async (_args, _signal, server) => {
      const texts: string[] = [];
      for (const prompt of ['one', 'two']) {
        const answer: any = await server!.request(
          { method: 'sampling/createMessage', params: { messages: [], maxTokens: 1, prompt } },
          anything as never,
        );
        texts.push(answer.content.text);
      }
      return { content: [{ type: 'text', text: texts.join() }] };
    });
    await register(one);
    await eventually(
      () => other.rpc('tools/list', {}, gateway.token),
      ({ result }) => result.tools.some(({ name }: any) => name === 'fix__twice'),
    );
    const second = await call('fix__twice', answering(await call('fix__twice')), other);
    expect(second.result.resultType).toBe('input_required');
    const last = await call('fix__twice', answering(second), other);
    expect([last.result.content, one.calls.length]).toEqual([[{ type: 'text', text: 'Paris,Paris' }], 1]);
    await eventually(
      () => gateway.sql('select * from mcp_held_answers'),
      (rows) => rows.length === 0,
    );
  });

  it('a call with a killed process is refused at once, and can be repeated', async () => {
    await register(await startFixture('legacy'));
    const beside = gateway.beside();
    const url = await beside.ready;
    const first = await call('fix__test_sampling', {}, { url });
    beside.child.kill('SIGKILL');
    await beside.ended;
    const answer = await call('fix__test_sampling', answering(first));
    expect(answer.error.data).toMatchObject({ code: 'unavailable' });
    expect((await call('fix__test_sampling', answering(await call('fix__test_sampling')))).result.content[0].text).toBe(
      'LLM response: Paris',
    );
  });

  it('policy decides each question, and concurrent calls do not mix', async () => {
    await register(await startFixture('legacy'));
    const firsts = await Promise.all(Array.from({ length: 5 }, () => call('fix__test_sampling')));
    const lasts = await Promise.all(
      firsts.map((first, n) =>
        call('fix__test_sampling', answering(first, { ...sampled, content: { type: 'text', text: `n${n}` } })),
      ),
    );
    expect(lasts.map(({ result }) => result.content[0].text)).toEqual(
      [0, 1, 2, 3, 4].map((n) => `LLM response: n${n}`),
    );
    expect((await call('fix__test_elicitation', {}, gateway, gateway.token, { sampling: {} })).error.message).toMatch(
      /elicitation/,
    );
    const text = 'forbid(principal, action == Action::"mcp_call", resource == Tool::"fix__sampling/createMessage");';
    const { body } = await gateway.call('POST', '/api/policies', { name: 'no sampling', text });
    const denied = await call('fix__test_sampling');
    expect(JSON.stringify(denied)).toMatch(/denied|forb|not allowed/i);
    await gateway.call('DELETE', `/api/policies/${body.id}`);
  });
});
