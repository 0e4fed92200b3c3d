import { weightOf } from '../../kernel/json.js';
import { isEnded, type NumberedEvent, type StoredTask } from '../task.types.js';

/** Number of events from which a log is long. */
export const longLog = 16;
/** Most characters of all remembered tasks; the oldest leave first. */
const maxWeight = 4_194_304;

interface Known {
  readonly task: StoredTask;
  readonly weight: number;
}

/**
 * Remembers tasks with long logs that this process read or changed, so that the next change does not read all content
 * again.
 */
export class LongTasks {
  private readonly known = new Map<string, Known>();
  private weight = 0;

  /** The task as it was remembered. Its content is current if its last event is. */
  find(id: string): StoredTask | undefined {
    return this.known.get(id)?.task;
  }

  /** Remembers a task as it is stored; forgets one that has ended. @param events by which it came from `from`. */
  keep(task: StoredTask, { from, events }: { from?: StoredTask; events?: readonly NumberedEvent[] } = {}): void {
    const known = this.known.get(task.id);
    this.forget(task.id);
    if (task.seq < longLog || isEnded(task)) return;
    const weight = known && known.task.seq === from?.seq ? known.weight + weightOf(events) : weightOf(task);
    if (weight > maxWeight) return;
    this.known.set(task.id, { task, weight });
    this.weight += weight;
    for (const id of this.known.keys()) {
      if (this.weight <= maxWeight) break;
      this.forget(id);
    }
  }

  private forget(id: string): void {
    this.weight -= this.known.get(id)?.weight ?? 0;
    this.known.delete(id);
  }
}
