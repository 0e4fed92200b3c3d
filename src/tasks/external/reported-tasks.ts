import { Injectable } from '@nestjs/common';
import { weightOf } from '../../kernel/weight.js';
import { foldedSeqAfter, type TaskChange } from '../storage/task-writer.js';
import { TaskStore } from '../storage/task.store.js';
import { isEnded, type StoredTask } from '../task.types.js';

/** Most characters of all remembered tasks; the oldest leave first. */
const maxWeight = 4_194_304;

interface Known {
  readonly task: StoredTask;
  readonly weight: number;
}

/**
 * Remembers the tasks on which this process committed reports, so that the next report does not read all that the
 * earlier ones said.
 */
@Injectable()
export class ReportedTasks {
  private readonly known = new Map<string, Known>();
  private weight = 0;

  constructor(private readonly store: TaskStore) {}

  /**
   * Returns the task as it is stored now; undefined when there is none.
   * @param id a UUID.
   */
  find(id: string): Promise<StoredTask | undefined> {
    const known = this.known.get(id);
    return known ? this.store.findChanged(known.task) : this.store.find(id);
  }

  /** Remembers the task after a committed change; forgets one that has ended. */
  keep(change: TaskChange): void {
    const { task, events } = change;
    const known = this.known.get(task.id);
    this.forget(task.id);
    if (isEnded(task)) return;
    const weight = known && known.task.seq === change.from?.seq ? known.weight + weightOf(events) : weightOf(task);
    if (weight > maxWeight) return;
    this.known.set(task.id, { task: { ...task, foldedSeq: foldedSeqAfter(change) }, weight });
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
