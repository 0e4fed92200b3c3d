import { Injectable } from '@nestjs/common';
import type { StreamResponse } from '../protocol/a2a/model.js';
import { TaskStore } from './storage/task.store.js';
import type { StoredTask } from './task.types.js';

/** Gives other modules read access to tasks and their logs, without a check of the owner. */
@Injectable()
export class TaskLogService {
  constructor(private readonly store: TaskStore) {}

  /** Events with numbers above `after`, up to and including `until`, in order. */
  events(id: string, after: number, until: number): Promise<StreamResponse[]> {
    return this.store.eventsBetween(id, after, until);
  }

  /** The current task; undefined when it was deleted. */
  task(id: string): Promise<StoredTask | undefined> {
    return this.store.find(id);
  }
}
