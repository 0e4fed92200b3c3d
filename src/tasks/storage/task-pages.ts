import { Injectable } from '@nestjs/common';
import { Cursors } from '../../platform/http/cursor.js';
import type { StoredTask } from '../task.types.js';
import { TaskListStore, type TaskFilter } from './task-list.store.js';
import type { TaskSelection } from './task.store.js';

/** A page of tasks, and the cursor of the next one when there is one. */
export interface TaskPage {
  readonly tasks: readonly StoredTask[];
  readonly nextCursor?: string;
}

/** Pages of tasks with cursors. A cursor is valid only for its list and its filter. */
@Injectable()
export class TaskPages {
  constructor(
    private readonly lists: TaskListStore,
    private readonly cursors: Cursors,
  ) {}

  /** Reads a page of a list. Throws `invalid_params` for a cursor of another list, before it reads anything. */
  readPage(
    list: string,
    filter: TaskFilter,
    { limit, cursor, ...selection }: TaskSelection & { limit: number; cursor?: string },
  ): Promise<TaskPage> {
    const scope = `${list}:${JSON.stringify(filter)}`;
    const after = cursor === undefined ? undefined : (this.cursors.decode(scope, cursor, 2) as [string, string]);
    return this.lists.readPage(filter, limit, { after, ...selection }).then(({ tasks, more }) => {
      const last = tasks.at(-1);
      const nextCursor = more && last ? this.cursors.encode(scope, [last.at, last.task.id]) : undefined;
      return { tasks: tasks.map(({ task }) => task), nextCursor };
    });
  }
}
