import { GatewayProbe } from '../../../src/cli/gateway-probe.js';
import { GatewayTrials } from '../../../src/cli/gateway-trials.js';
import { generateKeys, publicKeys } from '../../../src/protocol/e2ee/e2ee.js';
import { publish, rpc, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { rowsOf } from '../../support/gateway/dump.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

describe('agents that accept encrypted messages only', () => {
  let gateway: TestGateway;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_A2A_ACCEPT_CLEARTEXT: 'false' });
    await publish(gateway, { name: 'closed' });
    await publish(gateway, { name: 'open', a2a_accept_cleartext: true });
  });
  afterAll(() => gateway.close());

  const sealed = {
    encrypted_payload: Buffer.concat([Buffer.of(1), Buffer.alloc(80, 0xfb)]).toString('base64url'),
    encryption_version: 'hpke-v1',
    sender_signing_kid: 'k1',
  };
  const older = { message: { role: 'user', parts: [{ type: 'text', text: 'plain' }] } };
  const tasks = () => gateway.sql('select id from a2a_tasks');

  it('N4 RI-06: refuse a plain message at every door before it is stored', async () => {
    const text = /^this agent does not take unencrypted messages/;
    const parts = [{ data: sealed }, { text: 'and plain' }];
    for (const [method, params] of [
      ['SendMessage', { message: userMessage('plain') }],
      ['SendMessage', { message: userMessage('', { parts }) }],
      ['SendMessage', { message: userMessage('plain'), configuration: { returnImmediately: true } }],
      ['SendStreamingMessage', { message: userMessage('plain') }],
      ['message/send', older],
      ['tasks/send', older],
    ] as const) {
      const { body } = await rpcCall(gateway, method, params, { agent: 'closed' });
      expect(body.error).toMatchObject({ code: -32005, message: expect.stringMatching(text) });
    }
    const rest = await gateway.call('POST', '/a2a/agents/closed/message:send', { message: userMessage('plain') });
    expect([rest.status, rest.body.error.message]).toEqual([400, expect.stringMatching(text)]);
    const tool = await gateway.rpc('tools/call', {
      name: 'send_to_agent',
      arguments: { agent: 'closed', message: 'plain' },
    });
    expect(JSON.stringify(tool)).toContain('does not take unencrypted messages');
    expect(await tasks()).toEqual([]);
  });

  it('N4 RI-05: accept an encrypted message unchanged, in every dialect', async () => {
    const newer = await rpc(
      gateway,
      'SendMessage',
      { message: userMessage('', { parts: [{ data: sealed }] }) },
      { agent: 'closed' },
    );
    expect(newer.task.history[0].parts).toEqual([{ data: sealed }]);
    const message = { role: 'user', parts: [{ type: 'data', data: sealed }] };
    const task = await rpc(gateway, 'tasks/send', { message }, { agent: 'closed' });
    expect(task).toMatchObject({ status: { state: 'completed' }, artifacts: [{ parts: [{ data: sealed }] }] });
  });

  it('RI-06: get no cleartext from this gateway when their card requires encryption, and it stores none', async () => {
    const extensions = [{ uri: 'urn:rialto:e2ee:v1', required: true }];
    const behaviour = data({ ok: true });
    const skills = [{ id: 'work' }];
    const far = await startStubAgent({ name: 'Far', skills, capabilities: { extensions }, behaviour });
    await gateway.call('POST', '/api/a2a/agents', { url: far.url });
    const note = 'cleartext-for-a-remote-agent';
    const invoke = (args: object) =>
      gateway.call('POST', '/api/a2a/invoke', { agentCardId: 'far', skillId: 'work', args });
    expect((await invoke({ note })).body).toMatchObject({ code: 'content_type_not_supported', reason: 'cleartext' });
    const wish = { workType: 'work', description: note, requiredSkills: ['work'] };
    const { body } = await gateway.call('POST', '/api/a2a/dispatch', wish);
    expect([body.code, JSON.stringify(body)]).toEqual(['no_agent', expect.stringContaining('encrypted messages only')]);
    const tool = await gateway.rpc('tools/call', { name: 'far.work', arguments: { note } });
    expect(JSON.stringify(tool)).toContain('does not take unencrypted messages');
    expect(await rowsOf(gateway)).not.toContain(note);
    await publish(gateway, { name: 'front', executor: { kind: 'remote', agentId: 'far' }, a2a_accept_cleartext: true });
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('plain') }, { agent: 'front' });
    expect([task.status.state, JSON.stringify(task.status)]).toEqual([
      'TASK_STATE_FAILED',
      expect.stringContaining('does not take unencrypted messages'),
    ]);
    expect(far.requests).toEqual([]);
    expect((await invoke(sealed)).body).toMatchObject({ output: { ok: true } });
    await gateway.call('DELETE', '/api/a2a/published/front');
    await gateway.call('DELETE', '/api/a2a/agents/far');
    await gateway.sql('delete from a2a_tasks');
    await far.close();
  });

  it('N4: name a wrong encrypted_payload', async () => {
    for (const encrypted_payload of ['AQ', 7]) {
      const message = userMessage('', { parts: [{ data: sealed }, { data: { encrypted_payload } }] });
      const { error } = (await rpcCall(gateway, 'SendMessage', { message }, { agent: 'closed' })).body;
      expect(error.message).toContain('parts[1].data.encrypted_payload is not base64url of the byte 1');
    }
  });

  it('N4: have an executor that can pass them on; others are refused, and have no keys', async () => {
    const model = { kind: 'llm', url: 'http://127.0.0.1:9/v1', model: 'm' };
    const attempt = (more: object) =>
      gateway.call('POST', '/api/a2a/published', { name: 'thinker', description: 'x', executor: model, ...more });
    const refused = {
      status: 422,
      body: { detail: expect.stringContaining('a2a_accept_cleartext: an agent with the executor "llm"') },
    };
    expect(await attempt({})).toMatchObject(refused);
    expect(await attempt({ a2a_accept_cleartext: false })).toMatchObject(refused);
    expect((await attempt({ a2a_accept_cleartext: true })).status).toBe(201);
    const patch = (agent: string, change: object) => gateway.call('PATCH', `/api/a2a/published/${agent}`, change);
    expect(await patch('thinker', { a2a_accept_cleartext: false })).toMatchObject(refused);
    expect(await patch('thinker', { a2a_accept_cleartext: null })).toMatchObject(refused);
    expect(await patch('closed', { executor: model })).toMatchObject(refused);
    expect((await patch('thinker', { description: 'y' })).status).toBe(200);
    const publishKeys = (agent: string) =>
      gateway.call('POST', `/api/a2a/published/${agent}/keys`, publicKeys(generateKeys()));
    expect(await publishKeys('thinker')).toMatchObject({
      status: 422,
      body: { detail: expect.stringContaining('takes no encrypted messages') },
    });
    expect((await publishKeys('closed')).status).toBeLessThan(300);
  });

  it('N4: rialto doctor tries a task there too', async () => {
    const probe = new GatewayProbe(gateway.url);
    expect(await new GatewayTrials(probe, gateway.token).task()).toMatch(/^completed in/);
    await probe.close();
  });

  it('N4: each agent declares it itself, and a message without an agent goes to an agent that accepts it', async () => {
    const sent = await rpc(gateway, 'SendMessage', { message: userMessage('plain') }, { agent: '/a2a' });
    expect(sent.task.metadata['rialto/dispatch']).toMatchObject({ agent: 'open' });
    await gateway.call('PATCH', '/api/a2a/published/open', { a2a_accept_cleartext: false });
    const { body } = await rpcCall(gateway, 'SendMessage', { message: userMessage('plain') }, { agent: 'open' });
    expect(body.error.code).toBe(-32005);
  });
});
