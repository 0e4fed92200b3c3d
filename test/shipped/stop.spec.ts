import { setTimeout as wait } from 'node:timers/promises';
import { publish, rpc, userMessage } from '../support/clients/a2a.js';
import { shipped } from '../support/checks/shipped.js';
import { eventsIn, StrictConnection } from '../support/clients/strict-http.js';

const gateway = shipped();
const { pid, graceSeconds } = gateway.api;

/** Whether the process is there; one that has ended is forgotten by the script that started it. */
function isRunning(): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** A stream after its head and first event have arrived. */
class OpenStream {
  private constructor(
    private readonly connection: StrictConnection,
    private readonly chunks: Buffer[],
  ) {}

  static async of(agent: string, method: string, params: object): Promise<OpenStream> {
    const connection = await StrictConnection.open(gateway.url);
    const headers = { authorization: `Bearer ${gateway.token}` };
    connection.send({ path: `/a2a/agents/${agent}`, headers, body: { jsonrpc: '2.0', id: 1, method, params } });
    expect((await connection.head()).status).toBe(200);
    return new OpenStream(connection, [(await connection.chunk())!]);
  }

  /** Every event, after one terminator and the end of the connection. Throws when the stream ends in another way. */
  async events(): Promise<any[]> {
    for (let chunk = await this.connection.chunk(); chunk; chunk = await this.connection.chunk())
      this.chunks.push(chunk);
    await this.connection.ended();
    return eventsIn(Buffer.concat(this.chunks).toString('utf8')).map(({ result }) => result);
  }
}

// The script runs it after all others: the api process ends here.
describe('the stop of the shipped api', () => {
  it('ends each open stream with one terminator, and the process within the grace period of the chart', async () => {
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 1_500, chunks: 3 } });
    await publish(gateway, { name: 'asks', executor: { kind: 'echo', ask: 'Which colour?' } });
    const { task } = await rpc(gateway, 'SendMessage', { message: userMessage('paint') }, { agent: 'asks' });
    const waiting = await OpenStream.of('asks', 'SubscribeToTask', { id: task.id });
    const working = await OpenStream.of('slow', 'SendStreamingMessage', { message: userMessage('one two three') });
    const began = performance.now();
    process.kill(pid, 'SIGTERM');
    const [asked, worked] = await Promise.all([waiting.events(), working.events()]);
    expect(asked).toMatchObject([{ task: { id: task.id, status: { state: 'TASK_STATE_INPUT_REQUIRED' } } }]);
    expect(worked.at(-1)).toMatchObject({ statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } } });
    while (isRunning() && performance.now() - began < graceSeconds * 1_000) await wait(50);
    expect(isRunning()).toBe(false);
  });
});
