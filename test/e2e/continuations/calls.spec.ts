import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { closeRemotes, continuationOf, quick, startRemote } from '../../support/clients/remote-work.js';
import { data } from '../../support/stubs/stub-behaviours.js';

describe('the call of a killed process', () => {
  let home: TestGateway;
  beforeAll(async () => {
    home = await startTestGateway({ ...quick, RIALTO_ROLE: 'api' });
  });
  afterAll(async () => {
    await home.close();
    await closeRemotes();
  });

  const start = async (): Promise<GatewayProcess> => {
    const process = home.beside({ ...quick, RIALTO_ROLE: 'worker' });
    await process.ready;
    return process;
  };

  /**
   * Creates a task with a streaming remote agent, and interrupts it: by a kill of the process, or by a cut of the
   * connection.
   */
  const interrupted = async (how: 'kill' | 'cut'): Promise<{ id: string; slug: string }> => {
    const one = await startRemote(home, async (it) => {
      it.openStream();
      await it.emit({ task: 'working' });
      await it.pause(300);
      if (how === 'cut') return it.cutOff('reset');
      await it.untilGone();
    });
    let polls = 0; // enough polls that its run is deferred and resumed
    one.agent.set((it) => (++polls < 15 ? it.settle({ state: 'working' }) : data({ n: 1 })(it)), 'get');
    one.agent.set((it) => it.error(-32004, 'no'), 'subscribe');
    const name = `ours-${one.slug.replace('_', '-')}`;
    await publish(home, { name, executor: { kind: 'remote', agentId: one.slug } });
    const worker = await start();
    const configuration = { returnImmediately: true };
    const { task } = await rpc(home, 'SendMessage', { message: userMessage('x'), configuration }, { agent: name });
    await eventually(
      () => continuationOf(home, task.id),
      (row) => row !== undefined,
    );
    if (how === 'kill') {
      worker.child.kill('SIGKILL');
      await worker.ended;
      await start();
    }
    await eventually(
      () => home.sql('select status_state as state from a2a_tasks where id = $1', [task.id]),
      ([row]) => row!.state === 'completed',
    );
    expect((await continuationOf(home, task.id)).attempts).toBeGreaterThan(0);
    return { id: task.id, slug: one.slug };
  };
  const counted = async (slug: string) => [
    ...(await home.sql('select status, error_code from a2a_task_instances where agent_name = $1', [slug])),
    ...(await home.sql(
      'select o.successes, o.failures from agent_outcomes o join agent_cards a on a.id = o.agent_id where a.slug = $1',
      [slug],
    )),
  ];

  it('ends when the process that took over its task has finished', async () => {
    const { slug } = await interrupted('kill');
    expect(await counted(slug)).toEqual([
      { status: 'completed', error_code: null },
      { successes: '1', failures: '0' },
    ]);
  });

  it('is counted once when its process lives on and only its connection broke', async () => {
    const { slug } = await interrupted('cut');
    expect(await counted(slug)).toEqual([
      { status: 'failed', error_code: 'remote_transport' },
      { successes: '0', failures: '1' },
    ]);
  });
});
