/**
 * Which rows an event adds to its own commit, e.g. deliveries to webhooks; not asked of the commit that makes the task. Pure:
 * `sql` turns a relation `(task_id uuid, org_id uuid, seq integer)` of the events that were just appended into a data-modifying
 * statement.
 */
export interface EventSink {
  readonly name: string;
  sql(events: string): string;
}
