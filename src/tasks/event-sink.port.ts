/**
 * Adds rows to the commit of an event, e.g. deliveries to webhooks. The commit that creates a task does not call it.
 * Pure: `sql` gets a relation `(task_id uuid, org_id uuid, seq integer)` of the events that were just appended, and
 * returns a data-modifying statement.
 */
export interface EventSink {
  readonly name: string;
  sql(events: string): string;
  /** Returns an SQL condition: the sink still needs the log of this task, which retention then keeps. */
  needsLog?(taskId: string): string;
}
