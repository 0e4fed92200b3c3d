import { openTask } from '../lifecycle/task.lifecycle.js';
import type { StoredTask } from '../task.types.js';
import { LongTasks, longLog } from './long-tasks.js';

const step = { now: 1_000, newId: () => 'new', maxWeight: 100_000_000 };
const principal = { kind: 'user', id: 'bob', role: 'member', groups: [] } as const;

function taskOf(id: string, characters: number): StoredTask {
  const ids = { id, orgId: 'o', agentId: 'a', agentName: 'box', contextId: 'c' } as unknown as StoredTask;
  const message = { messageId: 'm', role: 'ROLE_USER' as const, parts: [{ text: 'x'.repeat(characters) }] };
  return { ...openTask({ ...ids, principal, depth: 0 }, message, step).task, seq: longLog };
}

describe('the tasks that a process remembers', () => {
  let tasks: LongTasks;
  const known = (...ids: string[]) => ids.filter((id) => tasks.find(id));

  beforeEach(() => void (tasks = new LongTasks()));

  it('have a long log, and have not ended', () => {
    const task = taskOf('one', 10);
    tasks.keep({ ...task, seq: longLog - 1 });
    expect(known('one')).toEqual([]);
    tasks.keep(task);
    expect(tasks.find('one')).toBe(task);
    tasks.keep({ ...task, state: 'TASK_STATE_COMPLETED' });
    expect(known('one')).toEqual([]);
  });

  it('hold a limited number of characters: the oldest leave first, and a larger task is not remembered', () => {
    for (const id of ['a', 'b', 'c']) tasks.keep(taskOf(id, 1_600_000));
    tasks.keep(taskOf('huge', 5_000_000));
    expect(known('a', 'b', 'c', 'huge')).toEqual(['b', 'c']);
  });

  it('grow by the events of their changes', () => {
    const from = taskOf('a', 2_000_000);
    tasks.keep(from);
    const body = {
      artifactUpdate: {
        taskId: 'a',
        contextId: 'c',
        artifact: { artifactId: 'x', parts: [{ text: 'y'.repeat(2_000_000) }] },
      },
    };
    tasks.keep({ ...from, seq: 17 }, { from, events: [{ seq: 17, body }] });
    tasks.keep(taskOf('b', 1_000_000));
    expect(known('a', 'b')).toEqual(['b']);
  });
});
