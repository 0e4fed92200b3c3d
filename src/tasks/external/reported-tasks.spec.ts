import { openTask } from '../lifecycle/task.lifecycle.js';
import type { TaskStore } from '../storage/task.store.js';
import type { StoredTask } from '../task.types.js';
import { ReportedTasks } from './reported-tasks.js';

const step = { now: 1_000, newId: () => 'new', maxWeight: 100_000_000 };
const principal = { kind: 'user', id: 'bob', role: 'member', groups: [] } as const;

function taskOf(id: string, characters: number): StoredTask {
  const ids = { id, orgId: 'o', agentId: 'a', agentName: 'box', contextId: 'c' } as unknown as StoredTask;
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x'.repeat(characters) }] };
  return openTask({ ...ids, principal, depth: 0 }, message, step).task;
}

describe('the tasks that a process remembers between their reports', () => {
  const read: string[] = [];
  const store = {
    find: (id: string) => Promise.resolve(void read.push(`all of ${id}`)),
    findChanged: (known: StoredTask) => Promise.resolve((read.push(`position of ${known.id}`), known)),
  };
  let tasks: ReportedTasks;
  const keep = (task: StoredTask) => tasks.keep({ task, events: [], hold: {} });

  beforeEach(() => {
    read.length = 0;
    tasks = new ReportedTasks(store as unknown as TaskStore);
  });

  it('are read again only in part, until they end', async () => {
    const task = taskOf('one', 10);
    await tasks.find('one');
    keep(task);
    expect(await tasks.find('one')).toMatchObject({ id: 'one', seq: 1 });
    keep({ ...task, state: 'TASK_STATE_COMPLETED' });
    await tasks.find('one');
    expect(read).toEqual(['all of one', 'position of one', 'all of one']);
  });

  it('hold a limited number of characters: the oldest leave first, and a larger task is not remembered', async () => {
    for (const id of ['a', 'b', 'c']) keep(taskOf(id, 1_600_000));
    keep(taskOf('huge', 5_000_000));
    for (const id of ['a', 'b', 'c', 'huge']) await tasks.find(id);
    expect(read).toEqual(['all of a', 'position of b', 'position of c', 'all of huge']);
  });
});
