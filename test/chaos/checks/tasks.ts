import { groupBy, type Check } from '../history.js';
import type { History } from '../history.js';

const ended = new Set(['completed', 'failed', 'canceled', 'rejected']);
const settled = new Set([...ended, 'input-required', 'auth-required']);

/** I1: every accepted task exists at the end, is at rest, and has the state that its agent intended. */
const durableAccept: Check = function* ({ rows, sends }) {
  const tasks = new Map(rows.tasks.map((task) => [task.id, task]));
  const missing = new Set(sends.flatMap(({ taskId }) => (taskId && !tasks.has(taskId) ? [taskId] : [])));
  for (const id of missing) yield `task ${id} was accepted, but does not exist`;
  for (const { id, agent, state, held, why } of rows.tasks) {
    if (!settled.has(state)) yield `task ${id} of ${agent} was left ${state}`;
    else if (held) yield `task ${id} of ${agent} is ${state} and still leased`;
    if (state === 'failed' && !why.includes('exceeded 3 attempts')) yield `task ${id} of ${agent} failed: ${why}`;
  }
};

/** I2: a task ends once, and no observer sees another state after the end. */
const oneOutcome: Check = function* (history) {
  const { rows } = history;
  const events = groupBy(rows.events, ({ taskId }) => taskId);
  for (const { id, state } of rows.tasks) {
    const log = events.get(id) ?? [];
    const ends = log.filter(({ terminal }) => terminal).length;
    if (ends !== (ended.has(state) ? 1 : 0)) yield `task ${id} is ${state} and has ${ends} terminal events`;
    if (ends > 0 && !log.at(-1)!.terminal) yield `task ${id} has events after its end`;
  }
  for (const { taskId, from, to } of rows.moves)
    if (ended.has(from.state)) yield `task ${taskId} went from ${from.state} to ${to.state}`;
  yield* sightsAfterEnd(history);
};

function* sightsAfterEnd({ rows, sightings }: History): Iterable<string> {
  const final = new Map(rows.tasks.map(({ id, state }) => [id, state]));
  for (const [key, seen] of groupBy(sightings, ({ by, taskId }) => `${by} ${taskId}`)) {
    const at = seen.findIndex(({ state }) => ended.has(state));
    if (at < 0) continue;
    const { state, taskId } = seen[at]!;
    const other = seen.slice(at).find((later) => later.state !== state);
    if (other) yield `${key} saw ${state} and then ${other.state}`;
    const end = final.get(taskId);
    if (end !== undefined && end !== state) yield `${key} saw ${state}; it ended ${end}`;
  }
}

/** I3: events have the numbers 1 to n, and the answer contains the full text exactly once. */
const monotoneHistory: Check = function* ({ rows, sends }) {
  const events = groupBy(rows.events, ({ taskId }) => taskId);
  const tasks = new Map(rows.tasks.map((task) => [task.id, task]));
  for (const { id, seq } of rows.tasks) {
    const numbers = (events.get(id) ?? []).map((event) => event.seq);
    if (numbers.length !== seq || numbers.some((number, index) => number !== index + 1))
      yield `task ${id} counts ${seq} events and has ${numbers.join()}`;
  }
  for (const { taskId, payload, echoes } of sends) {
    const task = taskId === undefined || !echoes ? undefined : tasks.get(taskId);
    if (task?.state === 'completed' && task.said !== payload)
      yield `task ${task.id} received '${payload}' and answered '${task.said}'`;
  }
};

/**
 * I4: one key stands for one task; another payload under it is refused. A key is free again when its task failed or was
 * canceled.
 */
const idempotentAccept: Check = function* ({ rows, sends }) {
  const states = new Map(rows.tasks.map(({ id, state }) => [id, state]));
  const keyed = sends.filter(({ key, taskId }) => key !== undefined && taskId !== undefined);
  for (const [name, tries] of groupBy(keyed, ({ org, agent, key }) => `${org} ${agent} ${key}`)) {
    const active = tries.filter(({ taskId }) => !['failed', 'canceled'].includes(states.get(taskId!) ?? ''));
    const ids = new Set(active.map(({ taskId }) => taskId));
    if (ids.size > 1) yield `the key ${name} stands for ${[...ids].join(' and ')}`;
    const payloads = new Set(active.map(({ payload }) => payload));
    if (payloads.size > 1) yield `the key ${name} took ${payloads.size} different payloads`;
  }
};

/** I4: a question is answered once. */
const oneAnswer: Check = function* ({ answers }) {
  const accepted = answers.filter((answer) => answer.accepted);
  for (const [taskId, all] of groupBy(accepted, (answer) => answer.taskId))
    if (all.length > 1) yield `task ${taskId} took ${all.length} answers to one question`;
};

/** I7: of all calls that try to end a task one wins, and only the winning calls report success. */
const oneWinner: Check = function* ({ rows, ends }) {
  const states = new Map(rows.tasks.map(({ id, state }) => [id, state]));
  for (const { taskId, want, accepted, state } of ends) {
    const end = states.get(taskId);
    if (accepted && end !== undefined && end !== want)
      yield `task ${taskId} ended ${end}, but a call reported that it is ${want}`;
    if (accepted && state !== undefined && state !== want)
      yield `task ${taskId}: a call for ${want} was accepted with ${state}`;
  }
};

/** I8: a holder that lost a task cannot change it any more. */
const noZombie: Check = function* ({ rows, leases, reports }) {
  for (const { taskId, from, to, stolen } of rows.moves) {
    if (to.epoch < from.epoch)
      yield `task ${taskId} was written by the holder of epoch ${to.epoch} after ${from.epoch}`;
    if (stolen) yield `task ${taskId} was taken from a live holder (epoch ${from.epoch})`;
  }
  for (const [name, all] of groupBy(leases, ({ taskId, epoch }) => `${taskId} under epoch ${epoch}`))
    if (all.length > 1) yield `task ${name} was handed out ${all.length} times`;
  const handedOut = groupBy(leases, ({ taskId }) => taskId);
  for (const { taskId, epoch, at, accepted } of reports) {
    const later = handedOut.get(taskId)?.some((lease) => lease.epoch > epoch && lease.at < at);
    if (accepted && later)
      yield `task ${taskId}: a report of epoch ${epoch} was accepted after a later epoch was handed out`;
  }
};

export const taskChecks: readonly (readonly [string, Check])[] = [
  ['I1', durableAccept],
  ['I2', oneOutcome],
  ['I3', monotoneHistory],
  ['I4', idempotentAccept],
  ['I4', oneAnswer],
  ['I7', oneWinner],
  ['I8', noZombie],
];
