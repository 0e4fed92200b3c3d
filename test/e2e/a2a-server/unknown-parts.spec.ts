import { publish, rpc, rpcStream } from '../../support/clients/a2a.js';
import { closeRemotes, quick, startRemote } from '../../support/clients/remote-work.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { asyncTask, stream } from '../../support/stubs/stub-behaviours.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

const activity = {
  kind: 'agent-native/agent-activity',
  activity: { step: 1, label: 'Reads <files>', nested: [null, { kind: 'text' }] },
};
const typed = { type: 'agent-native/agent-activity', activity: 'older spelling', metadata: { own: true } };
const data = { kind: 'data', data: { kind: 'agent-native/agent-activity', is: 'only data' } };
const older = (...parts: object[]) => ({
  message: {
    kind: 'message',
    messageId: `m${Math.random()}`,
    role: 'user',
    parts: [{ kind: 'text', text: 'x' }, ...parts],
  },
});
const has = (value: unknown, part: object) => expect(JSON.stringify(value)).toContain(JSON.stringify(part));

describe('AN-62 parts of unknown kinds', () => {
  let gateway: TestGateway;
  let sink: WebhookSink;
  beforeAll(async () => {
    gateway = await startTestGateway(quick);
    sink = await startWebhookSink();
    await publish(gateway);
  });
  afterAll(async () => {
    await gateway.close();
    await sink.close();
    await closeRemotes();
  });

  it('come back to clients of 0.3 as they were sent: in an answer, a stream, a read and a webhook', async () => {
    const configuration = { pushNotificationConfig: { url: `${sink.url}/hook` } };
    const task = await rpc(gateway, 'message/send', { ...older(activity, typed, data), configuration });
    const [artifact] = task.artifacts;
    expect(artifact.parts.slice(-3)).toEqual([activity, typed, data]);
    expect(task.history[0].parts.slice(-3)).toEqual([activity, typed, data]);
    const read = await rpc(gateway, 'tasks/get', { id: task.id });
    expect(read.artifacts[0].parts.slice(-3)).toEqual([activity, typed, data]);
    const frames = await (await rpcStream(gateway, 'message/stream', older(activity))).rest();
    has(frames, activity);
    await eventually(
      () => Promise.resolve(sink.received.map(({ text: body }) => body).join('\n')),
      (bodies) => bodies.includes(JSON.stringify(activity)),
    );
  });

  it('reach clients of 1.0 as data, with every member', async () => {
    const { id } = await rpc(gateway, 'message/send', older(activity));
    const task = await rpc(gateway, 'GetTask', { id }, { headers: { 'a2a-version': '1.0' } });
    expect(task.artifacts[0].parts.at(-1)).toMatchObject({ data: activity });
    const { message } = { message: { messageId: 'again', role: 'ROLE_USER', parts: task.artifacts[0].parts } };
    const sent = await rpc(gateway, 'SendMessage', { message });
    const back = await rpc(gateway, 'tasks/get', { id: sent.task.id });
    expect(back.artifacts[0].parts.at(-1)).toEqual(activity);
  });

  it('pass from a client to a remote agent and back, in its stream and in polls', async () => {
    const { agent, slug } = await startRemote(
      gateway,
      stream([
        { task: 'working' },
        { status: 'working', parts: [activity] },
        { artifact: 'a', parts: [{ text: 'answer' }, activity], lastChunk: true },
        { status: 'completed' },
      ]),
      { capabilities: { streaming: true } },
    );
    await publish(gateway, { name: 'far', executor: { kind: 'remote', agentId: slug } });
    const frames = await (await rpcStream(gateway, 'message/stream', older(activity), { agent: 'far' })).rest();
    const ofStatus = frames.map(({ data: { result } }) => result.status?.message?.parts).filter(Boolean);
    expect(ofStatus).toContainEqual([activity]);
    const ofArtifact = frames.map(({ data: { result } }) => result.artifact?.parts).filter(Boolean);
    expect(ofArtifact).toContainEqual([{ kind: 'text', text: 'answer' }, activity]);
    const { rawBody } = agent.requests.find(({ operation }) => operation === 'stream' || operation === 'send')!;
    expect(JSON.parse(rawBody).params.message.parts.at(-1)).toEqual(JSON.parse(JSON.stringify(activity)));

    agent.set(asyncTask(2, (call) => call.settle({ state: 'completed', artifacts: [[activity]] })));
    await publish(gateway, { name: 'polled', executor: { kind: 'remote', agentId: slug } });
    const task = await rpc(gateway, 'message/send', older(activity), { agent: 'polled' });
    expect(task.artifacts[0].parts).toEqual([activity]);
  });
});
