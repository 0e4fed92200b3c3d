import { publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { askAgain, continuationOf, quick } from '../../support/clients/remote-work.js';
import { done, result, TaskUpstream } from '../../support/stubs/task-upstream.js';

describe('a task of a server with a killed gateway process', () => {
  let home: TestGateway;
  let server: TaskUpstream;
  beforeAll(async () => {
    home = await startTestGateway({ ...quick, RIALTO_ROLE: 'api' });
    server = await TaskUpstream.start();
    await home.call('POST', '/api/mcp/servers', { id: 'far', url: server.url });
    await publish(home, { name: 'worker', executor: { kind: 'mcp-tool', serverId: 'far', tool: 'work' } });
  });
  afterAll(async () => {
    await home.close();
    await server.close();
  });

  const settledOf = (id: string) =>
    eventually(
      async () => (await home.call('GET', `/api/a2a/tasks/${id}`)).body,
      ({ state }) => state === 'completed',
    );

  it('is followed by another process, and the tool is not called again: from a message', async () => {
    const worker = home.beside(quick);
    await worker.ready;
    const configuration = { returnImmediately: true };
    const { task } = await rpc(
      home,
      'SendMessage',
      { message: userMessage('', { parts: [{ data: {} }] }), configuration },
      { agent: 'worker' },
    );
    await eventually(
      () => server.newest.looks,
      (looks) => looks > 1,
    );
    worker.child.kill('SIGKILL');
    await worker.ended;
    server.look = () => done;
    await home.beside(quick).ready;
    const { task: ended } = await settledOf(task.id);
    expect(ended.artifacts[0].parts[0]).toEqual({ text: 'printed' });
    expect(server.calls).toHaveLength(1);
    expect((await continuationOf(home, task.id)).attempts).toBeGreaterThan(0);
  });

  it('and from a tool call with a caller that was lost with its process', async () => {
    server.look = () => ({ status: 'working' });
    const before = server.calls.length;
    const front = home.beside({ ...quick, PORT: '0' });
    const url = await front.ready;
    const { body, headers } = modernRequest('tools/call', { name: 'far__work', arguments: {} });
    const call = fetch(`${url}/mcp`, {
      method: 'POST',
      headers: { authorization: `Bearer ${home.token}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }).catch(() => undefined);
    await eventually(
      () => server.newest.looks,
      (looks) => server.calls.length > before && looks > 1,
    );
    front.child.kill('SIGKILL');
    await Promise.all([front.ended, call]);
    server.look = () => done;
    const { taskId } = server.newest;
    const [row] = await home.sql('select task_id from a2a_continuations where remote_task_id = $1', [taskId]);
    await settledOf(row.task_id);
    expect((await askAgain(home, row.task_id)).result).toEqual(result);
    expect(server.calls).toHaveLength(before + 1);
  });
});
