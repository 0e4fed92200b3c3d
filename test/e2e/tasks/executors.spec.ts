import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  openStream,
  publish,
  rpc,
  rpcStream,
  userMessage,
  type Frame,
  type OpenStream,
} from '../../support/clients/a2a.js';
import { createTestDatabase } from '../../support/gateway/database.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, testSecret, type TestGateway } from '../../support/gateway/gateway.js';
import { HttpService } from '../../support/stubs/http-service.js';
import { MailboxWorker } from '../../support/clients/mailbox-worker.js';
import { startProcess } from '../../support/gateway/process.js';
import { startScenarioAgent } from '../../support/stubs/scenario-agent.js';
import { freePort } from '../../support/gateway/services.js';

type Scenario = 'plain' | 'stream' | 'ask' | 'fail' | 'wait' | 'file' | 'long';

/** An executor with its worker, with the same interface for all tests below. */
interface Worked {
  /** Returns the agent for a scenario, and the message to send. */
  agentFor(scenario: Scenario): { agent: string; text: string };
  /** Lets waiting work continue. */
  release(): void;
  /** Resolves when the worker knows that its task was canceled. */
  learntOfCancel(): Promise<unknown>;
  /** Makes the worker ignore new tasks. */
  sleep?(isAsleep: boolean): void;
  close(): Promise<unknown>;
}

const words: Partial<Record<Scenario, string>> = { plain: 'this', long: 'wait' };
const oneAgent = (agent: string) => (scenario: Scenario) => ({ agent, text: words[scenario] ?? scenario });

/** Publishes echo agents: their settings select the scenario, while other executors use the message. */
async function echo(gateway: TestGateway): Promise<Worked> {
  const agents = {
    plain: {},
    stream: { chunks: 3 },
    wait: { delayMs: 120_000, chunks: 2 },
    long: { delayMs: 8_000, chunks: 8 },
  };
  for (const [name, how] of Object.entries(agents))
    await publish(gateway, { name: `echo-${name}`, executor: { kind: 'echo', ...how }, defaultInputModes: ['*/*'] });
  return {
    agentFor: (scenario) => ({ agent: `echo-${scenario === 'file' ? 'plain' : scenario}`, text: 'one two three' }),
    release: () => undefined,
    learntOfCancel: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
}

async function remote(gateway: TestGateway): Promise<Worked> {
  const agent = await startScenarioAgent();
  await gateway.call('POST', '/api/a2a/agents', { url: agent.url, slug: 'far' });
  const executor = { kind: 'remote', agentId: 'far', skillId: 'echo' };
  await publish(gateway, { name: 'remote', executor, defaultInputModes: ['*/*'] });
  return {
    agentFor: oneAgent('remote'),
    release: () => agent.gate.open(),
    learntOfCancel: () => eventually(() => agent.executor.canceled.length, Boolean),
    close: () => agent.close(),
  };
}

async function http(gateway: TestGateway): Promise<Worked> {
  const service = await HttpService.start();
  await publish(gateway, { name: 'http', executor: { kind: 'http', url: service.url }, defaultInputModes: ['*/*'] });
  return {
    agentFor: oneAgent('http'),
    release: () => service.gate.open(),
    learntOfCancel: () => eventually(() => [service.calls.at(-1)!.body.type, ...refused(service)], isCancelOfCanceled),
    sleep: (isAsleep) => (service.answer = () => (isAsleep ? { status: 503 } : undefined)),
    close: () => service.close(),
  };
}

async function mailbox(gateway: TestGateway): Promise<Worked> {
  await publish(gateway, { name: 'mailbox', executor: { kind: 'mailbox' }, defaultInputModes: ['*/*'] });
  const worker = new MailboxWorker(gateway, 'mailbox');
  return {
    agentFor: oneAgent('mailbox'),
    release: () => worker.gate.open(),
    learntOfCancel: () => eventually(() => ['cancel', ...refused(worker)], isCancelOfCanceled),
    sleep: (isAsleep) => (worker.isAsleep = isAsleep),
    close: () => worker.close(),
  };
}

/** Returns the states of tasks with a refused late report. */
const refused = ({ heard }: HttpService | MailboxWorker) =>
  heard.filter(({ status }) => status === 409).map(({ body }) => body.state as string);
const isCancelOfCanceled = ([type, state]: readonly string[]) => type === 'cancel' && state === 'canceled';

const kinds = [
  ['echo', echo],
  ['remote', remote],
  ['http', http],
  ['mailbox', mailbox],
] as const;
/** All executors except the echo, which asks once and never fails. */
const thinkers = kinds.filter(([kind]) => kind !== 'echo');

const textsOf = (artifact: any): string => artifact.parts.map((part: any) => part.text ?? '').join('');
const isArtifact = (frame: Frame | undefined): boolean => frame !== undefined && 'artifactUpdate' in frame.data.result;

/** Reads until the first artifact, which means that the work has begun. Returns the task. */
async function begun(stream: OpenStream): Promise<any> {
  const first = await stream.next();
  for (let frame = await stream.next(); frame; frame = await stream.next()) if (isArtifact(frame)) break;
  return first!.data.result.task;
}

describe.each(kinds)('an agent with %s as executor', (kind, start) => {
  let gateway: TestGateway;
  let worked: Worked;
  beforeAll(async () => {
    gateway = await startTestGateway();
    worked = await start(gateway);
  });
  afterAll(async () => {
    await worked.close();
    await gateway.close();
  });

  const send = (scenario: Scenario, more: Record<string, unknown> = {}) => {
    const { agent, text } = worked.agentFor(scenario);
    return rpc(gateway, 'SendMessage', { message: userMessage(text, more) }, { agent });
  };
  const open = (scenario: Scenario) => {
    const { agent, text } = worked.agentFor(scenario);
    return rpcStream(gateway, 'SendStreamingMessage', { message: userMessage(text) }, { agent });
  };
  const taskOf = (id: string, scenario: Scenario) =>
    rpc(gateway, 'GetTask', { id }, { agent: worked.agentFor(scenario).agent });

  it('completes, with an artifact', async () => {
    const { task } = await send('plain');
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.artifacts.map(textsOf)).toEqual([kind === 'echo' ? 'one two three' : 'did this']);
  });

  it('streams its artifacts in order', async () => {
    const frames = await (await open('stream')).rest();
    expect(frames.map(({ id }) => id)).toEqual(frames.map((_, index) => index + 1));
    const parts = frames.filter(isArtifact).map(({ data }) => textsOf(data.result.artifactUpdate.artifact));
    expect(parts.join('')).toBe('one two three');
    expect(parts.length).toBeGreaterThan(1);
    const { id } = frames[0]!.data.result.task;
    const task = await taskOf(id, 'stream');
    expect([task.status.state, task.artifacts.map(textsOf)]).toEqual(['TASK_STATE_COMPLETED', ['one two three']]);
  });

  it('forwards the bytes of files unchanged', async () => {
    const raw = Buffer.from(Array.from({ length: 1_024 }, (_, index) => index % 256)).toString('base64');
    const file = { raw, filename: 'all.bin', mediaType: 'application/octet-stream' };
    const { agent, text } = worked.agentFor('file');
    const message = userMessage(text, { parts: [{ text }, file] });
    const { task } = await rpc(gateway, 'SendMessage', { message }, { agent });
    expect(task.artifacts.flatMap(({ parts }: any) => parts).filter((part: any) => part.raw)).toEqual([file]);
  });

  it('RY-22 stops when it is canceled, and no late report overwrites that', async () => {
    const stream = await open('wait');
    const { id } = kind === 'echo' ? (await stream.next())!.data.result.task : await begun(stream);
    const { agent } = worked.agentFor('wait');
    expect((await rpc(gateway, 'CancelTask', { id }, { agent })).status.state).toBe('TASK_STATE_CANCELED');
    const { seq } = (await gateway.sql('select seq from a2a_tasks where id = $1', [id]))[0];
    worked.release();
    expect((await stream.rest()).at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    await worked.learntOfCancel();
    expect(await gateway.sql('select seq, status_state from a2a_tasks where id = $1', [id])).toEqual([
      { seq, status_state: 'canceled' },
    ]);
  });
});

describe.each(thinkers)('an agent with %s as executor, which asks questions', (_kind, start) => {
  let gateway: TestGateway;
  let worked: Worked;
  beforeAll(async () => {
    gateway = await startTestGateway();
    worked = await start(gateway);
  });
  afterAll(async () => {
    await worked.close();
    await gateway.close();
  });

  it('RY-32 asks twice, and continues with both answers', async () => {
    const { agent, text } = worked.agentFor('ask');
    const say = async (words: string, more = {}) =>
      (await rpc(gateway, 'SendMessage', { message: userMessage(words, more) }, { agent })).task;
    const asked = await say(text);
    expect(asked.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: 'Which colour?' }] },
    });
    const { id: taskId } = asked;
    const again = await say('red', { taskId });
    expect(again.status).toMatchObject({
      state: 'TASK_STATE_INPUT_REQUIRED',
      message: { parts: [{ text: 'Which size?' }] },
    });
    const done = await say('large', { taskId });
    expect(done.status).toMatchObject({
      state: 'TASK_STATE_COMPLETED',
      message: { parts: [{ text: 'red and large' }] },
    });
    const texts = done.history.filter(({ role }: any) => role === 'ROLE_USER').map(({ parts }: any) => parts[0].text);
    expect(texts).toEqual(['ask', 'red', 'large']);
  });

  it('fails with its reason', async () => {
    const { agent, text } = worked.agentFor('fail');
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage(text) }, { agent });
    expect(task.status).toMatchObject({
      state: 'TASK_STATE_FAILED',
      message: { parts: [{ text: 'the printer is on fire' }] },
    });
  });
});

/** Creates a caller of a gateway in another process. */
function callerOf(url: string, token: string): TestGateway {
  const call = async (method: string, path: string, body?: unknown, as: string | null = token) => {
    const response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${as}`, 'content-type': 'application/json' },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  return { url, token, call } as TestGateway;
}

describe('when the gateway is killed during the work and starts again', () => {
  const worked = new Map<string, Worked>();
  const tasks = new Map<string, string>();
  let folder: string;
  let restarted: TestGateway;
  let answered: { id: string; agent: string }[];

  beforeAll(async () => {
    const database = await createTestDatabase('killed');
    const port = String(await freePort());
    folder = mkdtempSync(join(tmpdir(), 'rialto-killed-'));
    const env = {
      NODE_ENV: 'test',
      PORT: port,
      DATABASE_URL: database.url,
      RIALTO_DATA_DIR: folder,
      A2A_SECRET: testSecret,
    };
    const { child, ready, ended } = startProcess(env);
    const url = await ready;
    const first = callerOf(url, readFileSync(join(folder, 'token'), 'utf8').trim());
    for (const [kind, start] of kinds) worked.set(kind, await start(first));
    for (const [kind, { agentFor }] of worked) {
      const { agent, text } = agentFor('long');
      const body = { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message: userMessage(text) } };
      tasks.set(kind, (await begun(await openStream(`${url}/a2a/agents/${agent}`, { token: first.token, body }))).id);
    }
    answered = await Promise.all(['http', 'mailbox'].map((kind) => answer(first, worked.get(kind)!)));
    child.kill('SIGKILL');
    await ended;
    restarted = await startTestGateway({ PORT: port }, { database, dataDir: folder } as TestGateway);
    for (const { release, sleep } of worked.values()) {
      sleep?.(false);
      release();
    }
  });

  afterAll(async () => {
    await Promise.all([...worked.values()].map(({ close }) => close()));
    await restarted.close();
    await restarted.database.drop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** Sends a question, and answers it just before the kill, while no worker accepts the answer. */
  async function answer(gateway: TestGateway, { agentFor, sleep }: Worked): Promise<{ id: string; agent: string }> {
    const { agent, text } = agentFor('ask');
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage(text) }, { agent });
    sleep?.(true);
    const message = userMessage('red', { taskId: task.id });
    await rpc(gateway, 'SendMessage', { message, configuration: { returnImmediately: true } }, { agent });
    return { id: task.id, agent };
  }

  const settled = (id: string, agent: string, state: string) =>
    eventually(
      () => rpc(restarted, 'GetTask', { id }, { agent }),
      ({ status }) => status.state === state,
    );

  it.each(kinds)('the work of %s continues to its end', async (kind) => {
    const { agent } = worked.get(kind)!.agentFor('long');
    const task = await settled(tasks.get(kind)!, agent, 'TASK_STATE_COMPLETED');
    expect(task.artifacts.map(textsOf)).toEqual([kind === 'echo' ? 'one two three' : 'begun']);
    const ends = await restarted.sql('select from a2a_task_events where task_id = $1 and terminal', [task.id]);
    expect(ends).toHaveLength(1);
  });

  it('RY-31 earlier answers are used', async () => {
    for (const { id, agent } of answered) {
      const task = await settled(id, agent, 'TASK_STATE_INPUT_REQUIRED');
      await eventually(
        () => rpc(restarted, 'GetTask', { id }, { agent }),
        ({ status }) => status.message?.parts[0].text === 'Which size?',
      );
      const { task: done } = await rpc(
        restarted,
        'SendMessage',
        { message: userMessage('large', { taskId: task.id }) },
        { agent },
      );
      expect(done.status.message.parts[0].text).toBe('red and large');
    }
  });
});
