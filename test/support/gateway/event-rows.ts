/** SQL relation of the events of all tasks, a row each: `task_id`, `seq`, `terminal`, `body` and `at`. */
export const eventRows = `(
  select e.task_id, n as seq, e.terminal and n = e.seq as terminal, e.at, coalesce(stored -> 'event', stored) as body
  from a2a_task_events e
  cross join lateral generate_series(coalesce(e.first_seq, e.seq), e.seq) n
  cross join lateral (select case when e.first_seq is null then e.body else e.body -> (n - e.first_seq) end) s(stored)
) task_events`;

/** SQL for the ids of the tasks that have a text in their log. One that ended in its first commit has it in its row. */
export const tasksWithText = (text: string): string =>
  `(select task_id from a2a_task_events where strpos(body::text, ${text}) > 0)`;
