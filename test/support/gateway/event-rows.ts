import { completedEvent, eventsOfRows, type EventsRow } from '../../../src/tasks/storage/stored-event.js';
import type { NumberedEvent, StoredTask } from '../../../src/tasks/task.types.js';

/** SQL relation of the events of all tasks, a row each: `task_id`, `seq`, `terminal` and `at`. */
export const eventRows = `(
  select e.task_id, n as seq, e.terminal and n = e.seq as terminal, e.at
  from a2a_task_events e
  cross join lateral generate_series(coalesce(e.first_seq, e.seq), e.seq) n
) task_events`;

type Sql = <Row extends object = any>(text: string, values?: unknown[]) => Promise<Row[]>;

type TaskOfLog = Pick<StoredTask, 'id' | 'contextId' | 'history' | 'artifacts' | 'statusMessage'>;

/** Reads the logs of tasks, by id, in order. @param ids absent: those of all tasks. */
export async function readLogs(sql: Sql, ids?: readonly string[]): Promise<Map<string, NumberedEvent[]>> {
  const rows = await sql<EventsRow & { task: TaskOfLog }>(
    `select e.first_seq, e.seq, e.body, json_build_object('id', t.id, 'contextId', t.context_id,
       'history', t.history, 'artifacts', t.artifacts, 'statusMessage', t.status_message) as task
     from a2a_task_events e
     join a2a_tasks t on t.id = e.task_id
     where $1::uuid[] is null or e.task_id = any($1)
     order by e.task_id, e.seq`,
    [ids ?? null],
  );
  const logs = new Map<string, NumberedEvent[]>();
  for (const { task, ...row } of rows) {
    const events = eventsOfRows(task, [row]).flatMap((event) => completedEvent(task as StoredTask, event) ?? []);
    logs.set(task.id, [...(logs.get(task.id) ?? []), ...events]);
  }
  return logs;
}

/** Reads the bodies of the events of a task, in order. */
export async function readEvents(sql: Sql, id: string): Promise<any[]> {
  return ((await readLogs(sql, [id])).get(id) ?? []).map(({ body }) => body);
}

/** SQL for the ids of the tasks that have a text in their log. */
export const tasksWithText = (text: string): string =>
  `(select task_id from a2a_task_events where strpos(body::text, ${text}) > 0)`;
