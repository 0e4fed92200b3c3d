import { publish, rpcCall, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startFaultyDatabase } from '../../support/stubs/faulty-database.js';

/** Counts the session locks of live processes (src/platform/database/presence.ts). */
const presences = `select count(*)::int as count from pg_locks where locktype = 'advisory' and classid = 7262920`;

it('R5 every connection finds a promoted standby, and no request goes to the read-only server', async () => {
  const database = await startFaultyDatabase({ hasStandby: true });
  const gateway = await database.gateway();
  try {
    await publish(gateway);
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 300 } });
    const send = (text: string, agent = 'echo') =>
      rpcCall(gateway, 'SendMessage', { message: userMessage(text) }, { agent });
    const before = (await send('before')).body.result.task.id;
    await eventually(
      () => database.sql(presences),
      ([{ count }]) => count === 2,
    );
    await database.failOver();
    expect(await database.sql('select status_state from a2a_tasks where id = $1', [before])).toEqual([
      { status_state: 'completed' },
    ]);
    for (const agent of ['echo', 'slow']) {
      const { body } = await eventually(
        () => send('after', agent),
        ({ status }) => status === 200,
      );
      expect(body.result.task.status.state).toBe('TASK_STATE_COMPLETED');
    }
    await eventually(
      () => database.sql(presences),
      ([{ count }]) => count === 2,
    );
    for (let index = 0; index < 20; index++) expect((await send(`more ${index}`)).status).toBe(200);
  } finally {
    await gateway.close();
    await database.close();
  }
});
