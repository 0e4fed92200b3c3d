/** SQL relation of the events of all tasks, a row each: `task_id`, `seq`, `terminal`, `body` and `at`. */
export const eventRows = `(
  select e.task_id, n as seq, e.terminal and n = e.seq as terminal, e.at,
    case when e.first_seq is null then e.body else e.body -> (n - e.first_seq) end as body
  from a2a_task_events e
  cross join lateral generate_series(coalesce(e.first_seq, e.seq), e.seq) n) task_events`;
