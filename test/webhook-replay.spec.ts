import type { Message, StreamResponse, Task } from '../src/protocol/a2a/model.js';
import type { AgentId, OrgId, TaskId } from '../src/kernel/ids.js';
import { applyUpdate, openTask, resumeTask, type Moved } from '../src/tasks/lifecycle/task.lifecycle.js';
import { taskView } from '../src/tasks/task.types.js';
import { beginning, replay, taskAt, type TaskFacts } from '../src/webhooks/rendering/replay.js';

const message = (text: string): Message => ({ messageId: text, role: 'ROLE_USER', parts: [{ text }] });
let clock = 0;
const step = () => ({ now: ++clock, newId: () => `id-${clock}`, maxWeight: 1_000 });

/** Builds a task history with everything that changes a task: questions and answers, chunks, progress messages. */
function story(): { events: StreamResponse[]; views: Task[]; facts: TaskFacts } {
  const seed = {
    id: '0' as TaskId,
    orgId: 'o' as OrgId,
    agentId: 'a' as AgentId,
    agentName: 'echo',
    contextId: 'c',
    principal: { kind: 'user' as const, id: 'bob', role: 'member' as const, groups: [] },
    depth: 0,
    metadata: { from: 'bob' },
  };
  const moves: Moved[] = [openTask(seed, message('paint'), step())];
  const update = (given: Parameters<typeof applyUpdate>[1]) =>
    moves.push(applyUpdate(moves.at(-1)!.task, given, step()));
  const messageOf = (text: string) => ({ parts: [{ text }] });
  update({ status: { state: 'TASK_STATE_WORKING', message: messageOf('I begin') } });
  update({ artifact: { artifactId: 'one', parts: [{ text: 'a' }] } });
  update({ status: { state: 'TASK_STATE_INPUT_REQUIRED', message: messageOf('Which colour?') } });
  moves.push(resumeTask(moves.at(-1)!.task, message('red'), step()));
  update({ artifact: { artifactId: 'one', parts: [{ text: 'b' }] }, append: true });
  update({ status: { state: 'TASK_STATE_AUTH_REQUIRED' } });
  update({ status: { state: 'TASK_STATE_WORKING' } });
  update({ artifact: { artifactId: 'two', parts: [{ text: 'c' }] } });
  update({ status: { state: 'TASK_STATE_COMPLETED', message: messageOf('Done') } });
  const { history, agentName, contextId, metadata } = moves.at(-1)!.task;
  return {
    events: moves.map(({ event }) => event.body),
    views: moves.map(({ task }) => taskView(task)),
    facts: { id: seed.id, agentName, contextId, history, metadata },
  };
}

describe('a task as of an event', () => {
  it('is the task at that time, without later changes', () => {
    const { events, views, facts } = story();
    let past = beginning;
    const seen = events.map((event) => {
      past = replay(past, event, facts.history);
      return taskAt(past, facts);
    });
    expect(seen).toEqual(views);
  });

  it('knows the previous state', () => {
    const { events, facts } = story();
    let past = beginning;
    const before = events.map((event) => {
      past = replay(past, event, facts.history);
      return past.stateBefore;
    });
    expect(before.map((state) => state?.replace('TASK_STATE_', ''))).toEqual([
      undefined,
      'SUBMITTED',
      'WORKING',
      'WORKING',
      'INPUT_REQUIRED',
      'WORKING',
      'WORKING',
      'AUTH_REQUIRED',
      'WORKING',
      'WORKING',
    ]);
  });
});
