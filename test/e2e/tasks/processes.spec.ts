import { openStream, userMessage, type Frame } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { startStubAgent } from '../../support/stubs/stub-agent.js';
import { asyncTask, data } from '../../support/stubs/stub-behaviours.js';
import { eventRows, readEvents, tasksWithText } from '../../support/gateway/event-rows.js';

/** Tests two API processes and a worker on one database; each may be killed. */
describe('several processes', () => {
  let home: TestGateway;

  const started = new Map<string, Promise<{ url: string; process: GatewayProcess }>>();
  /** Returns the process with this name, and starts it before its first use and after a kill. */
  const running = async (name: 'A' | 'B' | 'worker') => {
    const present = await started.get(name);
    if (present && !present.process.child.killed) return present;
    const process = home.beside({
      RIALTO_ROLE: name === 'worker' ? 'worker' : 'api',
      A2A_CONTINUATION_POLL_MS: '300',
    });
    const next = process.ready.then((url) => ({ url, process }));
    started.set(name, next);
    return next;
  };

  beforeAll(async () => {
    home = await startTestGateway({ RIALTO_ROLE: 'api' });
    const publish = (name: string, executor: object) =>
      home.call('POST', '/api/a2a/published', { name, description: name, executor, a2a_enabled: true });
    await publish('echo', { kind: 'echo' });
    await publish('slow', { kind: 'echo', delayMs: 4_000, chunks: 8 });
    await publish('long', { kind: 'echo', delayMs: 8_000, chunks: 8 });
    await publish('asleep', { kind: 'echo', delayMs: 600_000 });
  });

  afterAll(async () => {
    await home.close();
  });

  const post = async (url: string, agent: string, method: string, params: unknown): Promise<any> => {
    const response = await fetch(`${url}/a2a/agents/${agent}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${home.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    });
    return response.json();
  };
  const stream = (url: string, agent: string, method: string, params: unknown, headers: Record<string, string> = {}) =>
    openStream(`${url}/a2a/agents/${agent}`, {
      token: home.token,
      headers,
      body: { jsonrpc: '2.0', id: 1, method, params },
    });
  const stateOf = async (id: string): Promise<string> =>
    (await home.sql('select status_state from a2a_tasks where id = $1', [id]))[0]?.status_state;
  const log = async (id: string) => {
    const rows = await home.sql(`select seq, terminal from ${eventRows} where task_id = $1 order by seq`, [id]);
    const bodies = await readEvents(home.sql, id);
    return rows.map((row, index) => ({ ...row, body: bodies[index] }));
  };
  const text = 'the quick brown fox jumps over the lazy dog';

  it('a subscriber on B gets every event of a task that runs on A, in order, to the end', async () => {
    const [a, b] = await Promise.all([running('A'), running('B')]);
    const sending = await stream(a.url, 'long', 'SendStreamingMessage', { message: userMessage(text) });
    const { id } = (await sending.next())!.data.result.task;
    const subscribers = await Promise.all(
      Array.from({ length: 5 }, () => stream(b.url, 'long', 'SubscribeToTask', { id })),
    );
    const [sent, ...seen] = await Promise.all([sending.rest(), ...subscribers.map((one) => one.rest())]);
    const events = await log(id);
    expect(sent.map((frame) => frame.id)).toEqual(events.slice(1).map(({ seq }) => seq));
    for (const frames of seen) {
      const [snapshot, ...rest] = frames;
      expect(snapshot!.data.result.task.id).toBe(id);
      expect(rest.map((frame) => frame.id)).toEqual(events.map(({ seq }) => seq).filter((seq) => seq > snapshot!.id!));
      expect(rest.map(({ data }) => data.result)).toEqual(events.slice(snapshot!.id).map(({ body }) => body));
    }
  });

  it('a cancel on B stops the executor on A, and it never completes', async () => {
    const [a, b] = await Promise.all([running('A'), running('B')]);
    const sending = await stream(a.url, 'asleep', 'SendStreamingMessage', { message: userMessage('zzz') });
    const { id } = (await sending.next())!.data.result.task;
    const canceled = await post(b.url, 'asleep', 'CancelTask', { id });
    expect(canceled.result.status.state).toBe('TASK_STATE_CANCELED');
    const rest = await sending.rest();
    expect(rest.at(-1)!.data.result.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    // The process that ran the task releases it at once, not after its minute of sleep.
    a.process.child.kill('SIGTERM');
    expect((await a.process.ended).code).toBe(0);
    expect((await log(id)).filter(({ terminal }) => terminal)).toHaveLength(1);
  });

  it.each(['a blocking call', 'a stream', 'an asynchronous task'])(
    'kill -9 of A in the middle of %s: another process ends it exactly once, and a resumed reader gets each event once',
    async (what) => {
      const [a, b, worker] = await Promise.all([running('A'), running('B'), running('worker')]);
      const message = userMessage(text);
      const frames: Frame[] = [];
      let id: string;
      if (what === 'an asynchronous task') {
        const { result } = await post(a.url, 'slow', 'SendMessage', {
          message,
          configuration: { returnImmediately: true },
        });
        id = result.task.id;
        await eventually(
          () => log(id),
          (events) => events.length >= 3,
        );
        worker.process.child.kill('SIGKILL');
        await running('worker');
      } else if (what === 'a stream') {
        const sending = await stream(a.url, 'slow', 'SendStreamingMessage', { message });
        for (let count = 0; count < 4; count++) frames.push((await sending.next())!);
        id = frames[0]!.data.result.task.id;
        a.process.child.kill('SIGKILL');
        await sending.rest().catch(() => undefined);
      } else {
        const cut = post(a.url, 'slow', 'SendMessage', { message }).catch((error: Error) => error);
        const [row] = await eventually(
          () => home.sql(`select id from a2a_tasks where id in ${tasksWithText('$1')}`, [message.messageId]),
          (rows) => rows.length > 0,
        );
        id = row.id;
        await eventually(
          () => log(id),
          (events) => events.length >= 3,
        );
        a.process.child.kill('SIGKILL');
        expect(await cut).toHaveProperty('message', 'fetch failed');
      }
      const last = String(frames.at(-1)?.id ?? 0);
      const resumed = await stream(b.url, 'slow', 'SubscribeToTask', { id }, { 'Last-Event-ID': last });
      frames.push(...(await resumed.rest()));
      const events = await log(id);
      expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index + 1));
      expect(frames.map((frame) => frame.id)).toEqual(events.map(({ seq }) => seq));
      expect(frames.map(({ data }) => data.result)).toEqual(events.map(({ body }) => body));
      expect(events.filter(({ terminal }) => terminal)).toHaveLength(1);
      expect(await stateOf(id)).toBe('completed');
      const { result } = await post(b.url, 'slow', 'GetTask', { id });
      expect(result.artifacts[0].parts.map((part: any) => part.text).join('')).toBe(text);
    },
  );

  it('AN-67 AN-68 kill -9 of A with a remote task: a worker finds its end, and sends nothing twice', async () => {
    const agent = await startStubAgent({
      card: 'v03',
      name: 'Far away',
      behaviour: asyncTask(12, data({ far: true })),
    });
    try {
      await home.call('POST', '/api/a2a/agents', { url: agent.url, timeoutMs: 30_000 });
      const [a] = await Promise.all([running('A'), running('worker')]);
      const call = { name: 'far_away.work', arguments: {} };
      const cut = fetch(`${a.url}/mcp`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${home.token}`,
          'content-type': 'application/json',
          accept: 'application/json',
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: call }),
      }).catch((error: Error) => error);
      await agent.waitForRequests(4);
      a.process.child.kill('SIGKILL');
      expect(await cut).toHaveProperty('message', 'fetch failed');
      const [row] = await eventually(
        () => home.sql(`select task_id, status, attempts from a2a_continuations where agent_slug = 'far_away'`),
        ([found]) => found?.status === 'completed',
      );
      expect(row.attempts).toBeGreaterThanOrEqual(1);
      expect(await stateOf(row.task_id)).toBe('completed');
      expect((await log(row.task_id)).filter(({ terminal }) => terminal)).toHaveLength(1);
      expect(agent.requests.filter(({ operation }) => operation === 'send')).toHaveLength(1);
    } finally {
      await agent.close();
    }
  });
});
