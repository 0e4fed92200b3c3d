import { dialects } from '../../protocol/a2a/dialects.js';
import type { StreamResponse, Task } from '../../protocol/a2a/model.js';
import type { PushFormat } from '../../protocol/a2a/request/operations.js';
import { runEvent } from '../../protocol/a2a/run/run-event.js';
import type { TaskState } from '../../protocol/a2a/states.js';

/** An event with its task as it was right after the event. */
export interface Happened {
  readonly event: StreamResponse;
  readonly seq: number;
  readonly task: Task;
  readonly stateBefore?: TaskState;
  readonly agentName: string;
}

/** True when bodies of this format need only the event, not the task. */
export function needsOnlyEvent(format: PushFormat): format is 'v1' | 'v0.3' {
  return format === 'v1' || format === 'v0.3';
}

/** The media type of a body (v1.0 section 9.1; v0.3 section 6.8 leaves it open). */
export function mediaTypeOf(format: PushFormat): string {
  return format === 'v1' ? 'application/a2a+json' : 'application/json';
}

/** The body for an event: a StreamResponse of v1.0, or the bare event of v0.3. */
export function eventBody(format: 'v1' | 'v0.3', event: StreamResponse): string {
  return JSON.stringify(dialects[format === 'v1' ? '1.0' : '0.3'].encodeEvent(event));
}

/**
 * The body for a change of state: the Task of v0.3 (RI-40), or the run event as in the run's stream (RY-25, RY-33).
 * Undefined for other events.
 */
export function taskBody(
  format: 'task' | 'reyn',
  { event, seq, task, stateBefore, agentName }: Happened,
): string | undefined {
  const change = 'statusUpdate' in event ? event.statusUpdate : undefined;
  if (change === undefined || change.status.state === stateBefore) return undefined;
  if (format === 'task') return JSON.stringify(dialects['0.3'].encodeEvent({ task }));
  return JSON.stringify(runEvent(task, change, seq, agentName));
}
