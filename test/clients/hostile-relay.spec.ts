import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { A2AClient, callAgent, type StreamResponse } from '../../src/a2a-client/client.js';
import { e2eeUri, suite } from '../../src/protocol/e2ee/card-extension.js';
import {
  decrypt,
  encrypt,
  generateKeys,
  publicKeys,
  rotateKeys,
  StreamSealer,
  type Envelope,
  type KeyRing,
  type Outgoing,
} from '../../src/protocol/e2ee/e2ee.js';

type Reply = { state?: string; parts?: object[]; message?: object[]; history?: object[] };

const alice = generateKeys();
const bob = generateKeys();
const relayKeys = generateKeys();
const mine = 'https://alice.example/keys.json';
const asParts = (envelopes: Envelope[]) => envelopes.map((data) => ({ data }));

const offer = (keys: string): object[] => [
  { uri: e2eeUri, required: true, params: { keys, suite, version: 'rialto-e2ee-v1' } },
];

/** The relay between Alice and Bob; each test sets what it changes. */
describe('RI-52: a relay that changes what it passes on', () => {
  const clients: A2AClient[] = [];
  let url = '';
  /** Path of the keys on the card, and the keys there. Bob answers with the keys. */
  let keysPath = '/keys.json';
  let ring: KeyRing = bob;
  let extensions = offer;
  let answer: (outgoing: Outgoing) => Promise<Reply>;
  const read: string[] = [];

  const relayed = async (request: IncomingMessage, response: ServerResponse) => {
    let text = '';
    for await (const chunk of request) text += String(chunk);
    const json = (body: object) => response.setHeader('content-type', 'application/json').end(JSON.stringify(body));
    if (request.url === keysPath) return json(publicKeys(ring));
    if (request.method === 'GET') return json(cardWith(`${url}${keysPath}`));
    const { id, method, params } = JSON.parse(text);
    if (method === 'GetTask') {
      const parts = [{ text: 'from the relay' }];
      const status = { state: 'TASK_STATE_COMPLETED' };
      return json({ jsonrpc: '2.0', id, result: { id: 'task', status, artifacts: [{ artifactId: 'a', parts }] } });
    }
    const { parts, messageId, contextId } = params.message;
    const envelope: Envelope = parts[0].data;
    const incoming = { keys: ring, recipient: envelope.recipient, keysOf: () => publicKeys(alice), place: {} };
    read.push((await decrypt(envelope, incoming)).payload.toString());
    const outgoing = {
      ...{ keys: ring, sender: envelope.recipient, recipient: mine, recipientKeys: publicKeys(alice) },
      ...{ messageId: 'answer', inReplyTo: messageId, contextId, taskId: 'task' },
    };
    const { state = 'TASK_STATE_COMPLETED', parts: artifact, message, history } = await answer(outgoing);
    const status = { state, ...(message && { message: { messageId: 'm', role: 'ROLE_AGENT', parts: message } }) };
    const artifacts = artifact ? [{ artifactId: 'a', parts: artifact }] : [];
    const task = { id: 'task', contextId, status, artifacts, ...(history && { history }) };
    if (method === 'SendMessage') return json({ jsonrpc: '2.0', id, result: { task } });
    response.setHeader('content-type', 'text/event-stream');
    const place = { taskId: 'task', contextId };
    const events = [
      ...artifacts.map((one) => ({ artifactUpdate: { ...place, artifact: one } })),
      { statusUpdate: { ...place, status } },
    ];
    for (const result of events) response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`);
    return response.end();
  };
  const relay = createServer((request, response) => void relayed(request, response));
  const cardWith = (keys: string) => ({
    ...{ name: 'Bob', description: 'b', version: '1', defaultInputModes: [], defaultOutputModes: [] },
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
    capabilities: { streaming: true, extensions: extensions(keys) },
    skills: [{ id: 'x', name: 'x', description: 'x', tags: [] }],
  });

  beforeAll(async () => {
    await new Promise<void>((done) => relay.listen(0, '127.0.0.1', done));
    url = `http://127.0.0.1:${(relay.address() as AddressInfo).port}`;
  });
  beforeEach(() => {
    [keysPath, ring, extensions] = ['/keys.json', bob, offer];
    read.length = 0;
    answer = async (outgoing) => ({ parts: asParts([await encrypt('yes', outgoing)]) });
  });
  afterAll(async () => {
    await Promise.all(clients.map((client) => client.close()));
    relay.closeAllConnections();
    await new Promise((done) => relay.close(done));
  });

  const optionsWith = (pins = new Map<string, readonly string[]>()) => ({
    apiKey: 'k',
    allow: '127.0.0.0/8',
    e2ee: { keys: alice, sender: mine, pins },
  });
  const clientOf = (pins?: Map<string, readonly string[]>, path = '') => {
    clients.push(new A2AClient(`${url}${path}`, optionsWith(pins)));
    return clients.at(-1)!;
  };
  const textsOf = (reply: any) => reply.task.artifacts.flatMap((one: any) => one.parts.map(({ text }: any) => text));
  const refused = (reason: string) =>
    expect.objectContaining({ code: 'encryption_failed', message: expect.stringMatching(new RegExp(`^${reason}`)) });
  const kidsOf = (one: KeyRing) => one.keys.map(({ kid }) => kid);
  /** The keys that are pinned, without their order, which says how old and for what they are. */
  const sortedPins = (pins: ReadonlyMap<string, readonly string[]>) =>
    [...pins].map(([at, kids]) => [at, [...kids].sort()]);

  describe('keys of the agent', () => {
    it('pins them under the address of the agent, so that the card cannot point to other ones', async () => {
      const pins = new Map<string, readonly string[]>();
      await clientOf(pins, '/.well-known/agent-card.json').sendAndWait('hello');
      expect(sortedPins(pins)).toEqual([[url, kidsOf(bob).sort()]]);
      [keysPath, ring] = ['/keys2.json', relayKeys];
      await expect(clientOf(pins).sendAndWait('secret')).rejects.toEqual(refused('key_changed'));
      expect(read).toEqual(['hello'].map((text) => JSON.stringify({ parts: [{ text }] })));
      expect(sortedPins(pins)).toEqual([[url, kidsOf(bob).sort()]]);
    });

    it('follows the card to another address when a pinned key endorses the keys there', async () => {
      const pins = new Map<string, readonly string[]>();
      await clientOf(pins).sendAndWait('hello');
      [keysPath, ring] = ['/keys2.json', rotateKeys(bob)];
      expect(textsOf(await clientOf(pins).sendAndWait('hello'))).toEqual(['yes']);
      expect(sortedPins(pins)).toEqual([[url, kidsOf(ring).sort()]]);
    });

    it('moves a pin of an earlier version from the address of the keys', async () => {
      const pins = new Map([[`${url}/keys.json`, kidsOf(bob)]]);
      ring = relayKeys;
      await expect(clientOf(pins).sendAndWait('secret')).rejects.toEqual(refused('key_changed'));
      ring = bob;
      await clientOf(pins).sendAndWait('hello');
      expect([...pins.get(url)!].sort()).toEqual(kidsOf(bob).sort());
      [keysPath, ring] = ['/keys2.json', relayKeys];
      await expect(clientOf(pins).sendAndWait('secret')).rejects.toEqual(refused('key_changed'));
    });
  });

  describe('answers', () => {
    const chunk = async (outgoing: Outgoing) => asParts([await (await StreamSealer.open(outgoing)).seal('Pay')]);
    const read = async (text: string) => {
      const events: StreamResponse[] = [];
      for await (const event of clientOf().stream(text)) events.push(event);
      return events;
    };

    it.each(['COMPLETED', 'INPUT_REQUIRED', 'AUTH_REQUIRED', 'FAILED'])(
      'refuses a stream without its end in the state %s',
      async (state) => {
        answer = async (outgoing) => ({ state: `TASK_STATE_${state}`, parts: await chunk(outgoing) });
        await expect(clientOf().sendAndWait('pay?')).rejects.toEqual(refused('truncated'));
        await expect(read('pay?')).rejects.toEqual(refused('truncated'));
      },
    );

    it('refuses a stream without its end in a message', async () => {
      answer = async (outgoing) => ({ state: 'TASK_STATE_INPUT_REQUIRED', message: await chunk(outgoing) });
      await expect(clientOf().sendAndWait('pay?')).rejects.toEqual(refused('truncated'));
    });

    it('reports a truncated stream before the event with the state', async () => {
      answer = async (outgoing) => ({ state: 'TASK_STATE_INPUT_REQUIRED', parts: await chunk(outgoing) });
      const seen: string[] = [];
      const reading = (async () => {
        for await (const event of clientOf().stream('pay?')) seen.push(...Object.keys(event));
      })();
      await expect(reading).rejects.toEqual(refused('truncated'));
      expect(seen).not.toContain('statusUpdate');
    });

    it('refuses a completed answer that has no envelope, and accepts an empty one', async () => {
      answer = () => Promise.resolve({});
      await expect(clientOf().sendAndWait('pay?')).rejects.toEqual(refused('truncated'));
      await expect(read('pay?')).rejects.toEqual(refused('truncated'));
      answer = async (outgoing) => ({ parts: asParts([await encrypt('', outgoing)]) });
      expect(textsOf(await clientOf().sendAndWait('pay?'))).toEqual(['']);
      answer = async (outgoing) => ({ message: asParts([await encrypt('done', outgoing)]) });
      expect(await callAgent(url, 'pay?', optionsWith())).toBe('done');
    });

    it('refuses an envelope that is repeated in one answer', async () => {
      answer = async (outgoing) => {
        const [first, second] = [await encrypt('first', outgoing), await encrypt('second', outgoing)];
        return { parts: asParts([first, second, first]) };
      };
      await expect(clientOf().sendAndWait('list')).rejects.toEqual(refused('replayed'));
      await expect(read('list')).rejects.toEqual(refused('replayed'));
    });

    it('refuses to read a task when the card no longer offers encryption', async () => {
      extensions = () => [];
      const client = clientOf();
      for (const reading of [client.getTask('task'), client.sendAndWait('', { taskId: 'task' })])
        await expect(reading).rejects.toMatchObject({ message: expect.stringContaining('offers no encryption') });
    });

    it('shows no cleartext of the history as the answer of the agent', async () => {
      const parts = [{ text: 'from the relay' }];
      const history = [{ messageId: 'h', role: 'ROLE_AGENT', parts }];
      answer = () => Promise.resolve({ state: 'TASK_STATE_INPUT_REQUIRED', history });
      await expect(callAgent(url, 'pay?', optionsWith())).rejects.toMatchObject({ code: 'empty_agent_response' });
    });
  });
});
