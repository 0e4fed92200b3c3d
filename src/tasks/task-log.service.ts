import { Injectable } from '@nestjs/common';
import type { StreamResponse } from '../protocol/a2a/model.js';
import { TaskStore } from './storage/task.store.js';
import type { StoredTask } from './task.types.js';

/** The log of tasks for other rooms, whoever the tasks belong to. */
@Injectable()
export class TaskLogService {
  constructor(private readonly store: TaskStore) {}

  /** Events after one number up to another, in order. */
  events(id: string, after: number, until: number): Promise<StreamResponse[]> {
    return this.store.eventsBetween(id, after, until);
  }

  /** The task as it is now; undefined when it is gone. */
  task(id: string): Promise<StoredTask | undefined> {
    return this.store.find(id);
  }
}
