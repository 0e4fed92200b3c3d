/** SQL for the session of an event. An act without a session is its own session, and has none in its row. */
export const sessionId = `coalesce(e.session_id, case when e.event ? 'action' then e.id::text end)`;

/**
 * SQL for an event as it was written, and hashed. The body of its row has only the members without a column; rows of
 * earlier versions have all members there.
 */
export const wholeEvent = `
  jsonb_strip_nulls(
    jsonb_build_object(
      'id', e.id,
      'orgId', e.org_id,
      'at', to_char(e.at at time zone 'utc', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'),
      'type', e.type,
      'sessionId', ${sessionId}
    )
  ) || e.event`;
