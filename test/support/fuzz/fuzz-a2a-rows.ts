import { foldArtifacts } from '../../../src/protocol/a2a/artifacts.js';
import type { Artifact, StreamResponse } from '../../../src/protocol/a2a/model.js';
import { terminalStates, wordOf } from '../../../src/protocol/a2a/states.js';
import type { TestGateway } from '../gateway/gateway.js';
import { eventRows, readLogs } from '../gateway/event-rows.js';

interface TaskRow {
  readonly id: string;
  readonly agent_name: string;
  readonly status_state: string;
  readonly seq: number;
  readonly folded_seq: number;
  readonly artifacts: Artifact[];
  readonly held: boolean;
  readonly due: boolean;
}

interface EventRow {
  readonly task_id: string;
  readonly seq: number;
  readonly body: StreamResponse;
  readonly terminal: boolean;
}

const ended = new Set([...terminalStates].map(wordOf) as string[]);

/**
 * Checks the rows of all tasks after a run and returns the faults.
 * @param open agents with tasks that may still wait for an external worker or caller.
 */
export async function rowComplaints(gateway: TestGateway, open: readonly string[]): Promise<string[]> {
  const tasks = await gateway.sql<TaskRow>(
    `select id, agent_name, status_state, seq, folded_seq, artifacts,
       lease_owner is not null as held, next_at is not null as due from a2a_tasks`,
  );
  const events = await gateway.sql<Omit<EventRow, 'body'>>(
    `select task_id, seq, terminal from ${eventRows} order by task_id, seq`,
  );
  const bodies = await readLogs(gateway.sql);
  const byId = new Map(tasks.map((task) => [task.id, task]));
  const logs = new Map<string, EventRow[]>(tasks.map(({ id }) => [id, []]));
  const complaints: string[] = [];
  for (const event of events) {
    const task = byId.get(event.task_id);
    if (task) logs.get(task.id)!.push({ ...event, body: bodies.get(task.id)![event.seq - 1]!.body });
    else complaints.push(`event ${event.seq} belongs to no task ${event.task_id}`);
  }
  for (const task of tasks)
    for (const wrong of taskComplaints(task, logs.get(task.id)!, open))
      complaints.push(`${task.agent_name} ${task.id} ${task.status_state}: ${wrong}`);
  return [...complaints, ...(await strayRows(gateway))];
}

function taskComplaints(task: TaskRow, log: readonly EventRow[], open: readonly string[]): string[] {
  const numbers = log.map(({ seq }) => seq);
  const terminal = log.filter((event) => event.terminal);
  const isEnded = ended.has(task.status_state);
  const statuses = log.map(({ body }) => statusIn(body)).filter((state) => state !== undefined);
  const folded = foldArtifacts(
    [],
    log.filter(({ seq }) => seq <= task.folded_seq).map(({ body }) => body),
  );
  const rests = isEnded || ['input-required', 'auth-required'].includes(task.status_state);
  return [
    ...(numbers.every((seq, index) => seq === index + 1) ? [] : [`its log has the numbers ${numbers.join()}`]),
    ...(numbers.length === task.seq ? [] : [`the task counts ${task.seq} events, the log has ${numbers.length}`]),
    ...(terminal.length === (isEnded ? 1 : 0) ? [] : [`${terminal.length} terminal events`]),
    ...(terminal.length === 0 || terminal[0] === log.at(-1) ? [] : ['an event after its terminal event']),
    ...(statuses.at(-1) === task.status_state ? [] : [`the last status in its log is ${statuses.at(-1)}`]),
    ...(JSON.stringify(folded) === JSON.stringify(task.artifacts)
      ? []
      : ['its artifacts differ from those of its log']),
    ...(rests || open.includes(task.agent_name) ? [] : ['left behind']),
    ...(rests && (task.held || task.due) ? ['at rest, but leased or due'] : []),
    ...(isEnded && task.seq - task.folded_seq > 15 ? ['ended with a long log, but not folded'] : []),
  ];
}

function statusIn(body: StreamResponse): string | undefined {
  if ('statusUpdate' in body) return wordOf(body.statusUpdate.status.state);
  return 'task' in body ? wordOf(body.task.status.state) : undefined;
}

/** Finds rows that refer to a missing task. */
async function strayRows(gateway: TestGateway): Promise<string[]> {
  const missing = 'where not exists (select from a2a_tasks t where t.id = x.task_id)';
  const rows = await gateway.sql<{ what: string; rows: number }>(
    `select 'push configurations' as what, count(*)::int as rows from push_configs x ${missing}
     union all select 'deliveries', count(*)::int from webhook_deliveries x ${missing}
     union all select 'keys', count(*)::int from a2a_idempotency_keys x ${missing} and x.answer is null`,
  );
  return rows.filter(({ rows }) => rows > 0).map(({ what, rows }) => `${rows} ${what} without a task`);
}
