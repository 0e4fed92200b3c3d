import { writeFileSync } from 'node:fs';
import { openStream, publish, rpc, userMessage } from '../../support/clients/a2a.js';
import { eventually } from '../../support/gateway/eventually.js';
import { verdictOf } from '../../support/fuzz/fuzz-a2a-answers.js';
import { rowComplaints } from '../../support/fuzz/fuzz-a2a-rows.js';
import type { KnownTask } from '../../support/fuzz/fuzz-a2a-words.js';
import { volleyOf, type A2aGround, type A2aShot } from '../../support/fuzz/fuzz-a2a.js';
import { startWatchedGateway, type Stall, type WatchedGateway } from '../../support/fuzz/fuzz-gateway.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { sendBytes } from '../../support/clients/raw-socket.js';

const seed = Number(process.env.RIALTO_FUZZ_SEED ?? 20_261_122);
const shots = Number(process.env.RIALTO_FUZZ_SHOTS ?? 4_000);
/** File for the figures of the run, for later analysis. */
const reportFile = process.env.FUZZ_REPORT_FILE;
const lanes = 12;
const slots = 24;
const hangMs = 10_000;
const stallMs = 100;

/** Tables that requests at these doors write. Their rows are checked one by one; all other tables must not change. */
const written = new Set([
  ...['a2a_tasks', 'a2a_task_events', 'a2a_idempotency_keys', 'push_configs'],
  ...['webhook_deliveries', 'webhook_attempts'],
  ...['audit_events', 'audit_chain', 'audit_pending', 'audit_checkpoints', 'audit_subject_keys'],
]);

/** A sent volley, which can be repeated alone. */
interface Fired {
  readonly number: number;
  readonly tasks: readonly KnownTask[];
  readonly from: number;
  readonly until: number;
}

let home: TestGateway;
let target: WatchedGateway;
let ground: A2aGround;
const agents = {
  echo: { executor: { kind: 'echo' } },
  asks: { executor: { kind: 'echo', ask: 'Which one?' } },
  slow: { executor: { kind: 'echo', delayMs: 60, chunks: 4 }, history: 'agent' },
  mail: { executor: { kind: 'mailbox' } },
  plain: { executor: { kind: 'echo' }, streaming: false, pushNotifications: false, extendedCard: false },
  older: { executor: { kind: 'echo' }, protocolVersions: ['0.3'] },
  strict: {
    executor: { kind: 'echo' },
    protocolVersions: ['1.0'],
    extensions: [{ uri: 'https://example.com/extension', required: true }],
  },
};
const hosts = ['asks', 'asks', 'asks', 'slow', 'mail', 'mail', 'echo'] as const;

beforeAll(async () => {
  home = await startTestGateway({ RIALTO_ROLE: 'api' });
  for (const [name, more] of Object.entries(agents)) await publish(home, { name, ...more });
  await home.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
  await home.call('POST', '/api/policies', {
    name: 'no deploys of main',
    text: `forbid(principal, action == Action::"task_submit", resource)
      when { context.input.hasTag("branch") && context.input.getTag("branch") == "secret" };`,
  });
  const member = await home.tokenOf('default', 'mia');
  const stranger = await home.tokenOf('acme', 'ann', 'admin');
  target = await startWatchedGateway(home);
  ground = {
    agents: Object.keys(agents),
    tokens: { admin: home.token, member, stranger },
    tasks: await Promise.all(Array.from({ length: slots }, (_, index) => freshTask(index))),
    urls: ['http://127.0.0.1:9/hook', `${target.url}/a2a/agents/echo`],
  };
});

afterAll(async () => {
  await target.stop();
  await home.close();
});

/** Creates a task to attack; most of these tasks wait for their caller. */
async function freshTask(number: number): Promise<KnownTask> {
  const agent = hosts[number % hosts.length]!;
  const params = { message: userMessage('seed'), configuration: { returnImmediately: agent !== 'asks' } };
  const { task } = await rpc(home, 'SendMessage', params, { agent });
  return { id: task.id, contextId: task.contextId, agent };
}

async function contents(): Promise<Record<string, string>> {
  const tables = await home.sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' order by 1`,
  );
  const found: Record<string, string> = {};
  for (const { name } of tables.filter((table) => !written.has(table.name))) {
    const [row] = await home.sql(
      `select count(*)::int as rows, md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as hash
       from "${name}" t`,
    );
    found[name] = `${row.rows} rows, ${row.hash}`;
  }
  return found;
}

const fire = ({ bytes, leaveAfterMs }: A2aShot) =>
  sendBytes(target.port, bytes, { hangMs, streams: true, ...(leaveAfterMs !== undefined && { leaveAfterMs }) });

/** Sends all shots of the run and checks each answer. */
class Barrage {
  readonly findings: string[] = [];
  readonly statuses: Record<number, number> = {};
  readonly tasks = new Set<string>();
  readonly refused = new Set<string>();
  readonly fired: Fired[] = [];
  private next = 0;
  private sent = 0;

  async run(): Promise<void> {
    await Promise.all(Array.from({ length: lanes }, () => this.lane()));
  }

  private async lane(): Promise<void> {
    while (this.sent < shots) {
      const number = this.next++;
      if (number % 4 === 0) await this.renew(number / 4);
      const { tasks } = ground;
      const volley = volleyOf(seed + number, ground);
      this.sent += volley.length;
      const from = Date.now();
      await Promise.all(volley.map((shot) => this.judge(number, shot)));
      this.fired.push({ number, tasks, from, until: Date.now() });
    }
  }

  private async judge(number: number, shot: A2aShot): Promise<void> {
    const { answer, hung } = await fire(shot);
    const { wrong, tasks, refused } = verdictOf(shot, answer, hung);
    this.statuses[answer?.status ?? 0] = (this.statuses[answer?.status ?? 0] ?? 0) + 1;
    if (wrong) this.findings.push(`${seed + number} ${shot.method} ${shot.path.slice(0, 120)}: ${wrong}`);
    for (const id of tasks) this.tasks.add(id);
    if (refused) this.refused.add(shot.context);
  }

  report(): object {
    const { findings, statuses, sent, tasks } = this;
    return { sent, statuses, tasks: tasks.size, findings };
  }

  /** Replaces one task under attack at a time. */
  private async renew(number: number): Promise<void> {
    const task = await freshTask(number);
    ground = { ...ground, tasks: ground.tasks.with(number % slots, task) };
  }
}

/** Opens the largest number of streams that one caller may have, which shows that abandoned streams no longer count. */
async function openStreams(): Promise<number[]> {
  const task = await freshTask(0);
  const opening = Array.from({ length: 50 }, () =>
    openStream(`${target.url}/a2a/agents/${task.agent}/tasks/${task.id}:subscribe`, { token: home.token }),
  );
  const streams = await Promise.all(opening);
  for (const stream of streams) stream.close();
  return streams.map(({ status }) => status);
}

const excessOf = ({ usedMs, gcMs }: Stall): number => usedMs - gcMs;

/** Repeats alone the volleys that were in progress during a stall, and returns those that stall the loop each time. */
async function culpritsOf(stalls: readonly Stall[], fired: readonly Fired[]): Promise<string[]> {
  const culprits: string[] = [];
  for (const { at, lagMs } of stalls) {
    for (const { number, tasks } of fired.filter((one) => one.from <= at && one.until >= at - lagMs)) {
      let stalled = 0;
      for (let time = 0; time < 3; time++) {
        const known = target.stalls().length;
        await Promise.all(volleyOf(seed + number, { ...ground, tasks }).map(fire));
        await new Promise((resolve) => setTimeout(resolve, 100));
        if (
          target
            .stalls()
            .slice(known)
            .some((stall) => excessOf(stall) > stallMs)
        )
          stalled++;
      }
      if (stalled === 3) culprits.push(`${seed + number} stalls the loop (${lagMs} ms in the run)`);
    }
  }
  return culprits;
}

it('abuse 30-36, M11: no A2A input gets a 5xx, stalls or ends the gateway, or leaves a partial change', async () => {
  const before = await contents();
  await target.summary();
  const barrage = new Barrage();
  const began = Date.now();
  await barrage.run();
  const seconds = (Date.now() - began) / 1_000;
  const loop = await target.summary();
  const stalls = target.stalls().filter((stall) => stall.at > began && stall.lagMs > stallMs);
  const culprits = await culpritsOf(
    stalls.filter((stall) => excessOf(stall) > stallMs),
    barrage.fired,
  );

  if (reportFile)
    writeFileSync(reportFile, JSON.stringify({ seconds, ...barrage.report(), loop, stalls, culprits }, null, 1));

  expect(barrage.findings.slice(0, 50)).toEqual([]);
  await eventually(
    () => home.sql(`select id from a2a_tasks where agent_name <> 'mail' and status_state in ('submitted', 'working')`),
    ({ length }) => length === 0,
    20_000,
  ).catch(() => undefined); // rowComplaints names them
  const rows = await home.sql<{ id: string; context_id: string }>('select id, context_id from a2a_tasks');
  expect(await rowComplaints(home, ['mail'])).toEqual([]);
  const stored = new Set(rows.map(({ id }) => id));
  expect([...barrage.tasks].filter((id) => !stored.has(id))).toEqual([]);
  expect(rows.filter(({ context_id: context }) => barrage.refused.has(context))).toEqual([]);
  expect(await contents()).toEqual(before);
  expect((await home.call('POST', '/api/audit/verify')).body).toMatchObject({ valid: true, unsealed: 0 });
  expect(culprits).toEqual([]);
  expect(await openStreams()).toEqual(Array(50).fill(200));
  expect(loop.polluted).toBe(false);
  const { code, lines } = await target.stop();
  expect(code).toBe(0);
  expect(lines.filter((line) => /"level":(50|60)|"level":"(error|fatal)"|unhandled/i.test(line))).toEqual([]);
  // The run reached every kind of door: answers, refusals of each kind, and incorrect requests.
  for (const status of [0, 200, 201, 204, 400, 401, 403, 404, 405, 409, 413, 415])
    expect([status, barrage.statuses[status] ?? 0]).not.toEqual([status, 0]);
  expect(rows.length).toBeGreaterThan(shots / 20);
}, 900_000);
