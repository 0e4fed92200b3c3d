/**
 * Claims keys. A key is free when it has no task, or when its task failed or was canceled. The check sees only rows of
 * this statement's snapshot; a task that a concurrent request committed a moment ago is not among them.
 */
export function claimKeys(rows: string): string {
  return `
    insert into a2a_idempotency_keys as known (org_id, agent_id, owner, key, payload_hash, task_id)
    select *
    from json_to_recordset(${rows}) as r(
      org_id uuid, agent_id uuid, owner text, key text, payload_hash text, task_id uuid
    )
    ${orTakeFreeKey}
    returning task_id`;
}

/**
 * SQL condition under which a task frees its key: it failed or was canceled. A task with an unknown outcome keeps its
 * key, because its remote may have done the work: a repeat under the same key must find this task, and must not do the
 * work twice.
 */
export function freesItsKey(task: string): string {
  return `(${task}.status_state in ('failed', 'canceled')
    and ${task}.status_message #>> '{metadata,errorCode}' is distinct from 'outcome_unknown')`;
}

/** Takes a known key that is free. The inserted row is called `known`. */
export const orTakeFreeKey = `
    on conflict (org_id, agent_id, owner, key) do update
    set payload_hash = excluded.payload_hash, task_id = excluded.task_id, answer = excluded.answer, created_at = now()
    where known.answer is null
      and exists (
        select
        from a2a_tasks t
        where t.id = known.task_id and ${freesItsKey('t')}
      )`;

/** SQL condition under which a row `r` of a change may be stored: it has no key, or `claimKeys` claimed it. */
export const mayUseKey = 'r.keyed is not true or r.id in (select task_id from k)';
