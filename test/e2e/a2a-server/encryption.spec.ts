import { A2AClient, type A2AClientOptions, type StreamResponse } from '../../../src/a2a-client/client.js';
import {
  decrypt,
  encrypt,
  generateKeys,
  partsPayload,
  partsType,
  publicKeys,
  readKeySet,
  rotateKeys,
  StreamSealer,
  type Envelope,
  type KeyRing,
} from '../../../src/protocol/e2ee/e2ee.js';
import { publish, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { hasPython, PythonAgent } from '../../support/clients/python-agent.js';
import { rowsOf } from '../../support/gateway/dump.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { HttpService } from '../../support/stubs/http-service.js';

const marker = 'the-merger-closes-on-friday';
const extension = 'urn:rialto:e2ee:v1';

describe('keys and clients of end-to-end encryption', () => {
  let gateway: TestGateway;
  let service: HttpService;
  const clients: A2AClient[] = [];
  const mine = generateKeys();
  let bob = generateKeys();
  /** How the service answers: with one envelope, a stream, cleartext, or a stream without its end. */
  let mode: 'whole' | 'stream' | 'cleartext' | 'truncated' = 'whole';
  const received: string[] = [];

  beforeAll(async () => {
    gateway = await startTestGateway();
    service = await HttpService.start();
    await publish(gateway);
    await publish(gateway, { name: 'bob', a2a_accept_cleartext: false, executor: { kind: 'http', url: service.url } });
    expect((await publishKeys('bob', bob)).status).toBe(201);
    service.answer = async ({ body }) => ({ status: 200, body: { events: await work(body) } });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    await service.close();
    await gateway.close();
  });

  const publishKeys = (agent: string, ring: KeyRing, more: object = {}) =>
    gateway.call('POST', `/api/a2a/published/${agent}/keys`, { ...publicKeys(ring), ...more });
  const keysUrl = (agent: string) => `${gateway.url}/a2a/${agent}/keys.json`;
  const clientOf = (agent: string, options: A2AClientOptions = {}): A2AClient => {
    const e2ee = { keys: mine, sender: 'me' };
    const url = `${gateway.url}/a2a/agents/${agent}`;
    const client = new A2AClient(url, { apiKey: gateway.token, allow: '127.0.0.0/8', e2ee, ...options });
    clients.push(client);
    return client;
  };
  const textsOf = (parts: any[] = []) => parts.map(({ text }) => text);
  const refused = (text: RegExp) =>
    expect.objectContaining({ code: 'encryption_failed', message: expect.stringMatching(text) });

  /** The agent Bob: decrypts the message of a work order, and answers in upper case. */
  async function work({ message, task }: any): Promise<object[]> {
    const envelope = message.parts[0].data as Envelope;
    const { contextId, id: taskId } = task;
    const keysOf = () => publicKeys(mine);
    const place = { messageId: message.messageId, contextId, taskId };
    const opened = await decrypt(envelope, { keys: bob, recipient: keysUrl('bob'), keysOf, place });
    const text = JSON.parse(opened.payload.toString()).parts[0].text as string;
    received.push(text);
    const outgoing = {
      ...{ keys: bob, sender: keysUrl('bob'), recipient: opened.sender, recipientKeys: publicKeys(mine) },
      ...{ messageId: `answer-${taskId}`, inReplyTo: envelope.message_id, contextId, taskId, contentType: partsType },
    };
    const payloadOf = (answer: string) => partsPayload([{ text: answer.toUpperCase() }]);
    const artifact = (parts: object[], append = false) => ({
      type: 'artifact',
      artifact: { artifactId: 'answer', parts },
      append,
    });
    const done = { type: 'complete' };
    if (mode === 'cleartext') return [artifact([{ text: 'from the relay' }]), done];
    if (mode === 'whole') return [artifact([{ data: await encrypt(payloadOf(text), outgoing) }]), done];
    const sealer = await StreamSealer.open(outgoing);
    const chunks = [await sealer.seal(payloadOf('one')), await sealer.seal(payloadOf('two'), { last: true })];
    const sent = mode === 'truncated' ? chunks.slice(0, 1) : chunks;
    return [...sent.map((data, index) => artifact([{ data }], index > 0)), done];
  }

  it('RI-52: an agent lists its keys for everyone, and its card points to them', async () => {
    const { body, status } = await gateway.call('GET', '/a2a/bob/keys.json', undefined, null);
    expect([status, body]).toEqual([200, publicKeys(bob)]);
    const card = await gateway.call('GET', '/a2a/agents/bob/.well-known/agent-card.json');
    expect(card.body.capabilities.extensions).toContainEqual(
      expect.objectContaining({
        uri: extension,
        required: true,
        params: expect.objectContaining({ keys: keysUrl('bob'), version: 'rialto-e2ee-v1' }),
      }),
    );
    expect((await gateway.call('GET', '/a2a/echo/keys.json', undefined, null)).body).toEqual({ keys: [] });
    expect((await gateway.call('GET', '/a2a/nobody/keys.json', undefined, null)).status).toBe(404);
    const other = await gateway.call('GET', '/a2a/agents/echo/.well-known/agent-card.json');
    expect(JSON.stringify(other.body)).not.toContain(extension);
  });

  it('RI-06: a refusal of cleartext states the reason and where the keys are, and stores nothing', async () => {
    const before = await gateway.sql('select id from a2a_tasks');
    const { body } = await gateway.call('POST', '/a2a/agents/bob/message:send', { message: userMessage('plain') });
    expect(JSON.stringify(body)).toContain(keysUrl('bob'));
    const { body: rpcBody } = await rpcCall(gateway, 'SendMessage', { message: userMessage('x') }, { agent: 'bob' });
    expect(JSON.stringify(rpcBody.error)).toContain(keysUrl('bob'));
    expect(await gateway.sql('select id from a2a_tasks')).toEqual(before);
  });

  it('RI-52: a client encrypts by itself, and no plaintext is in the database or the log', async () => {
    const reply: any = await clientOf('bob').sendAndWait(marker, { pollMs: 50 });
    expect(textsOf(reply.task.artifacts[0].parts)).toEqual([marker.toUpperCase()]);
    expect(received).toContain(marker);
    const rows = await rowsOf(gateway);
    expect(rows).toContain('encrypted_payload');
    for (const seen of [rows, gateway.log.join('\n')])
      for (const secret of [marker, marker.toUpperCase(), ...[...bob.keys, ...mine.keys].map(({ d }) => d)])
        expect(seen).not.toContain(secret);
  });

  it('RI-52: a client opens a stream of chunks', async () => {
    mode = 'stream';
    const texts: unknown[] = [];
    for await (const event of clientOf('bob').stream('go') as AsyncIterable<StreamResponse>)
      if ('artifactUpdate' in event) texts.push(...textsOf(event.artifactUpdate.artifact.parts));
    expect(texts).toEqual(['ONE', 'TWO']);
    const reply: any = await clientOf('bob').sendAndWait('go', { pollMs: 50 });
    expect(textsOf(reply.task.artifacts[0].parts)).toEqual(['ONE', 'TWO']);
  });

  it.each([
    ['a cleartext answer', 'cleartext', /^malformed: .*not encrypted/],
    ['a truncated stream', 'truncated', /^truncated/],
  ] as const)('RI-52: a client refuses %s', async (_, how, text) => {
    mode = how;
    await expect(clientOf('bob').sendAndWait('go', { pollMs: 50 })).rejects.toEqual(refused(text));
    const stream = clientOf('bob').stream('go');
    const reading = (async () => {
      for await (const event of stream) void event;
    })();
    await expect(reading).rejects.toEqual(refused(text));
  });

  it('RI-52: keys rotate with a message in flight, and a client with pins follows an endorsed rotation', async () => {
    mode = 'whole';
    const pins = new Map<string, readonly string[]>();
    const e2ee = { keys: mine, sender: 'me', pins };
    await clientOf('bob', { e2ee }).sendAndWait('go', { pollMs: 50 });
    const before = readKeySet((await gateway.call('GET', '/a2a/bob/keys.json')).body);
    const place = { messageId: 'flying', contextId: 'c-9' };
    const outgoing = { ...place, keys: mine, sender: 'me', recipient: keysUrl('bob'), contentType: partsType };
    const flying = await encrypt(partsPayload([{ text: 'flying' }]), { ...outgoing, recipientKeys: before });

    bob = rotateKeys(bob);
    expect((await publishKeys('bob', bob)).body.keys).toEqual(publicKeys(bob).keys);
    const message = userMessage('', { ...place, parts: [{ data: flying }] });
    await rpcCall(gateway, 'SendMessage', { message }, { agent: 'bob' });
    await eventually(
      () => received,
      (all) => all.includes('flying'),
    );
    await clientOf('bob', { e2ee }).sendAndWait('after', { pollMs: 50 });
    const used = service.calls.at(-1)!.body.message.parts[0].data.recipient_kid;
    expect(used).toBe(bob.keys[2]!.kid);
    expect(pins.get(`${gateway.url}/a2a/agents/bob`)).toHaveLength(4);
  });

  it('RI-52: refuses keys without endorsement; after a reset, a client with pins sends nothing', async () => {
    const pins = new Map([[`${gateway.url}/a2a/agents/bob`, publicKeys(bob).keys.map(({ kid }) => kid)]]);
    const stranger = generateKeys();
    expect((await publishKeys('bob', stranger)).status).toBe(409);
    const keep = bob;
    bob = stranger;
    expect((await publishKeys('bob', stranger, { reset: true })).status).toBe(201);
    const calls = service.calls.length;
    await expect(
      clientOf('bob', { e2ee: { keys: mine, sender: 'me', pins } }).sendAndWait('go', { pollMs: 50 }),
    ).rejects.toEqual(refused(/^key_changed/));
    expect(service.calls).toHaveLength(calls);
    bob = keep;
    await publishKeys('bob', bob, { reset: true });
  });

  it.each<[string, (keys: any[]) => unknown[], number]>([
    ['a private key', () => [...mine.keys], 400],
    ['a kid that is not the thumbprint', ([key]) => [{ ...key, kid: 'mine' }], 400],
    ['no key to verify with', ([key]) => [key], 422],
  ])('RI-52: refuses to publish %s', async (_, change, status) => {
    const keys = change(publicKeys(generateKeys()).keys as any[]);
    const answer = await gateway.call('POST', '/api/a2a/published/echo/keys', { keys });
    expect(answer.status).toBe(status);
    expect(JSON.stringify(answer.body)).not.toContain(mine.keys[0]!.d);
    expect((await gateway.call('GET', '/a2a/echo/keys.json')).body.keys).toEqual([]);
  });

  it('RI-52: a client never sends cleartext that it should encrypt', async () => {
    const tasks = async () => (await gateway.sql('select id from a2a_tasks')).length;
    const count = await tasks();
    await expect(clientOf('echo').send(marker)).rejects.toMatchObject({
      message: expect.stringContaining('offers no encryption'),
    });
    await expect(clientOf('bob', { e2ee: undefined }).send(marker)).rejects.toMatchObject({
      message: expect.stringContaining('option "e2ee"'),
    });
    expect(await tasks()).toBe(count);
    const e2ee = { keys: mine, sender: 'me', required: false };
    await expect(clientOf('echo', { e2ee }).send('hi')).resolves.toMatchObject({ task: {} });
  });

  it('RI-52: the approval of an encrypted message fits when the client sends the same message again', async () => {
    const text = '@ask forbid(principal, action == Action::"task_submit", resource == PublishedAgent::"bob");';
    const { body: policy } = await gateway.call('POST', '/api/policies', { name: 'ask', text });
    const ada = await gateway.tokenOf('default', 'ada', 'admin');
    const approvals = async () => (await gateway.call('GET', '/api/approvals?state=pending')).body.items;
    const client = clientOf('bob');
    const send = (messageId: string) => client.sendAndWait({ messageId, parts: [{ text: 'pay' }] }, { pollMs: 50 });
    await expect(send('pay-1')).rejects.toThrow(/a person must approve/);
    const [{ id }] = await approvals();
    await gateway.call('POST', `/api/approvals/${id}`, { decision: 'approve' }, ada);
    await expect(send('pay-2')).rejects.toThrow(/a person must approve/);
    const reply: any = await send('pay-1');
    expect(textsOf(reply.task.artifacts[0].parts)).toEqual(['PAY']);
    await gateway.call('DELETE', `/api/policies/${policy.id}`);
  });

  (hasPython ? describe : describe.skip)('an agent in Python that knows only the page', () => {
    const python = generateKeys();
    const conf = (name: string) => ({ keys: python, sender: keysUrl(name), peers: { me: publicKeys(mine) } });
    const answered = async (agent: string, text: string) => {
      const reply: any = await clientOf(agent).sendAndWait(text, { pollMs: 50 });
      return textsOf(reply.task.artifacts[0].parts);
    };

    it('RI-52: decrypts and answers as an HTTP service', async () => {
      const agent = await PythonAgent.start('serve', conf('pyhttp'));
      const url = `http://127.0.0.1:${agent.said}/work`;
      await publish(gateway, { name: 'pyhttp', executor: { kind: 'http', url } });
      await publishKeys('pyhttp', python);
      expect(await answered('pyhttp', 'grüße')).toEqual(['GRÜSSE']);
      expect(await answered('pyhttp', 'stream it')).toEqual(['STREAM ', 'IT']);
      await agent.close();
    });

    it('RI-52: decrypts and answers as a mailbox worker', async () => {
      const { secret: token } = await publish(gateway, { name: 'pymail', executor: { kind: 'mailbox' } });
      await publishKeys('pymail', python);
      const agent = await PythonAgent.start('mailbox', { ...conf('pymail'), url: gateway.url, agent: 'pymail', token });
      expect(await answered('pymail', 'hello')).toEqual(['HELLO']);
      await agent.close();
    });
  });
});
