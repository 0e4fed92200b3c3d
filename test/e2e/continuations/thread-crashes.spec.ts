import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { closeRemotes, quick, startRemote, type Remote } from '../../support/clients/remote-work.js';
import { asyncTask, never, text } from '../../support/stubs/stub-behaviours.js';
import { startWebhookSink, type WebhookSink } from '../../support/stubs/webhook-sink.js';

describe('a conversation thread with killed processes', () => {
  let home: TestGateway;
  let sink: WebhookSink;
  beforeAll(async () => {
    home = await startTestGateway({ ...quick, RIALTO_ROLE: 'api', A2A_CONTINUATION_PRECLAIM_WAIT_MS: '20000' });
    sink = await startWebhookSink();
  });
  afterAll(async () => {
    await home.close();
    await Promise.all([closeRemotes(), sink.close()]);
  });
  beforeEach(() => void (sink.received.length = 0));

  const start = async (): Promise<GatewayProcess & { url: string }> => {
    const process = home.beside(quick);
    return { ...process, url: await process.ready };
  };
  const kill = async ({ child, ended }: GatewayProcess): Promise<void> => {
    child.kill('SIGKILL');
    await ended;
  };
  const body = ({ slug }: Remote) => ({
    agentCardId: slug,
    skillId: 'work',
    thread: { url: sink.url, id: 't', token: 'canary' },
  });
  const rowOf = async ({ slug }: Remote): Promise<any> => {
    const sql = 'select t.* from thread_answers t join a2a_continuations c using (task_id) where c.agent_slug = $1';
    return (await home.sql(sql, [slug]))[0];
  };
  const answers = () => sink.received.filter(({ body: sent }) => sent.type === 'answer');
  const delivered = (remote: Remote) =>
    eventually(
      () => rowOf(remote),
      (row) => row?.status === 'delivered',
    );

  it('AN-75 kill -9 between send and receipt: the answer is sent once more, with the same mark', async () => {
    const remote = await startRemote(home, asyncTask(30, text('the answer')), { capabilities: { streaming: false } });
    sink.script(['hang'], true);
    const { body: answer } = await home.call('POST', '/api/a2a/invoke', body(remote));
    expect(answer.output).toMatchObject({ state: 'working' });
    await home.rpc('tools/call', { name: 'task_status', arguments: { taskId: answer.taskId } });
    const first = await start();
    await eventually(answers, ({ length }) => length === 1);
    expect(await rowOf(remote)).toMatchObject({ status: 'delivering', receipt: null, payload: { text: 'the answer' } });
    await kill(first);
    sink.script([]);
    const second = await start();
    const row = await delivered(remote);
    expect(row).toMatchObject({ token: null, payload: null, attempts: 2, receipt: { status: 200 } });
    expect(answers().map(({ headers }) => headers['idempotency-key'])).toEqual([row.id, row.id]);
    expect(answers()[1]!.body).toEqual(answers()[0]!.body);
    await kill(second);
  });

  it('a caller that was lost with its process: another process sends the answer to its thread', async () => {
    const remote = await startRemote(home, never, {
      timeoutMs: 30_000,
      capabilities: { streaming: false },
    });
    const [first, second] = [await start(), await start()];
    const lost = fetch(`${first.url}/api/a2a/invoke`, {
      method: 'POST',
      headers: { authorization: `Bearer ${home.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body(remote)),
    }).then(
      () => 'answered',
      () => 'lost',
    );
    await eventually(
      () => rowOf(remote),
      (row) => row?.status === 'held',
    );
    await kill(first);
    remote.agent.set(text('late'), 'get');
    expect(await lost).toBe('lost');
    const row = await delivered(remote);
    expect(answers().map(({ body: sent }) => [sent.id, sent.text])).toEqual([[row.id, 'late']]);
    await kill(second);
  });
});
