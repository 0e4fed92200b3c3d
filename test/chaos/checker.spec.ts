import { check } from './checker.js';
import { emptyHistory, type History } from './history.js';

const task = '0199-task';
const delivery = (seq: number, id = `d${seq}`) => ({
  id,
  taskId: task,
  configId: 'c',
  seq,
  status: 'delivered',
  deliveredAt: 1_100 + seq,
});

/** A history without violations: a retried send, a reader that resumed, a remote agent, a webhook receiver. */
function healthy(): History {
  const history = emptyHistory();
  const send = { org: 'default', agent: 'slow', key: 'k', payload: 'p', at: 900, ms: 10, echoes: true };
  history.sends.push(send, { ...send, status: 200, taskId: task });
  history.sightings.push({ by: 'a', taskId: task, state: 'working', at: 1 });
  history.sightings.push({ by: 'a', taskId: task, state: 'completed', at: 2 });
  const frame = (seq: number) => ({ seq, at: 1_000 + seq, isSnapshot: false });
  history.streams.push({ taskId: task, frames: [frame(1), frame(2)] }, { taskId: task, after: 2, frames: [frame(3)] });
  history.ends.push({ taskId: task, want: 'canceled', accepted: false });
  history.answers.push({ taskId: task, accepted: true }, { taskId: task, accepted: false });
  history.leases.push({ taskId: task, epoch: 1, at: 950 }, { taskId: task, epoch: 2, at: 960 });
  history.reports.push({ taskId: task, epoch: 1, at: 970, accepted: false });
  history.reports.push({ taskId: task, epoch: 2, at: 970, accepted: true });
  history.remoteSends.push({ messageId: 'm', payload: 'p', at: 900 });
  history.remoteSends.push({ messageId: 'm', payload: 'p', at: 950, answeredAt: 960 });
  for (const seq of [2, 3])
    history.posts.push({ webhookId: `d${seq}`, at: 1_000 + seq, endedAt: 1_001 + seq, status: 200 });
  history.texts.push({ org: 'beta', where: 'an answer', text: 'secret of beta' });
  history.canaries.push({ org: 'beta', text: 'secret of beta' });
  history.rows = {
    tasks: [{ id: task, agent: 'slow', state: 'completed', seq: 3, epoch: 2, held: false, said: 'p', why: '' }],
    events: [1, 2, 3].map((seq) => ({ taskId: task, seq, terminal: seq === 3, at: 1_000 + seq })),
    moves: [
      move('submitted', 1, 1, 'working', 2, 1),
      { ...move('working', 2, 1, 'working', 2, 2), remembered: 'm', at: 962 },
      move('working', 2, 2, 'completed', 3, 2),
    ],
    deliveries: [delivery(2), delivery(3)],
  };
  return history;
}

function move(from: string, fromSeq: number, fromEpoch: number, to: string, seq: number, epoch: number) {
  return {
    taskId: task,
    at: 970,
    from: { state: from, seq: fromSeq, epoch: fromEpoch },
    to: { state: to, seq, epoch },
    stolen: false,
  };
}

/** Changes the task row of a healthy history. */
function withTask(history: History, change: object): void {
  history.rows = { ...history.rows, tasks: [{ ...history.rows.tasks[0]!, ...change }] };
}

const planted: [string, string, (history: History) => void][] = [
  ['I1', 'does not exist', (h) => void h.sends.push({ ...h.sends[1]!, key: 'other', taskId: 'lost' })],
  ['I1', 'was left working', (h) => withTask(h, { state: 'working' })],
  ['I1', 'still leased', (h) => withTask(h, { held: true })],
  ['I1', 'failed: the disk', (h) => withTask(h, { state: 'failed', why: 'the disk' })],
  [
    'I1',
    'at most 2000',
    (h) => void h.measures.push({ invariant: 'I1', what: 'kill to owned', value: 2_001, most: 2_000 }),
  ],
  [
    'I2',
    'has 0 terminal',
    (h) => (h.rows = { ...h.rows, events: h.rows.events.map((e) => ({ ...e, terminal: false })) }),
  ],
  ['I2', 'went from completed', (h) => (h.rows = { ...h.rows, moves: [move('completed', 3, 2, 'canceled', 4, 3)] })],
  [
    'I2',
    'saw completed and then failed',
    (h) => void h.sightings.push({ by: 'a', taskId: task, state: 'failed', at: 3 }),
  ],
  ['I2', 'it ended completed', (h) => void h.sightings.push({ by: 'b', taskId: task, state: 'canceled', at: 3 })],
  ['I3', 'and has 1,3', (h) => (h.rows = { ...h.rows, events: h.rows.events.filter(({ seq }) => seq !== 2) })],
  ['I3', "and answered 'pp'", (h) => withTask(h, { said: 'pp' })],
  [
    'I3',
    'resumed after 2 and received 2',
    (h) => void h.streams.push({ ...h.streams[1]!, frames: h.streams[0]!.frames.slice(1) }),
  ],
  [
    'I3',
    'received 1 and then 3',
    (h) => void h.streams.push({ taskId: task, frames: [h.streams[0]!.frames[0]!, h.streams[1]!.frames[0]!] }),
  ],
  [
    'I3',
    'before its commit',
    (h) => void h.streams.push({ taskId: task, frames: [{ seq: 2, at: 990, isSnapshot: false }] }),
  ],
  [
    'I3',
    'which does not exist',
    (h) => void h.streams.push({ taskId: task, frames: [{ seq: 4, at: 2_000, isSnapshot: false }] }),
  ],
  ['I4', 'stands for', (h) => void h.sends.push({ ...h.sends[1]!, taskId: 'another' })],
  ['I4', 'different payloads', (h) => void h.sends.push({ ...h.sends[1]!, payload: 'q' })],
  ['I4', 'took 2 answers', (h) => void h.answers.push({ taskId: task, accepted: true })],
  ['I8', 'handed out 2 times', (h) => void h.leases.push({ taskId: task, epoch: 2, at: 965 })],
  ['I5', 'as 2 messages', (h) => void h.remoteSends.push({ messageId: 'n', payload: 'p', at: 955 })],
  ['I5', 'its remote task was known', (h) => void h.remoteSends.push({ messageId: 'm', payload: 'p', at: 5_000 })],
  ['I5', 'sent again 5 ms', (h) => void h.remoteSends.push({ messageId: 'm', payload: 'p', at: 955, answeredAt: 960 })],
  ['I6', 'that no delivery has', (h) => void h.posts.push({ webhookId: 'x', at: 1, status: 200 })],
  [
    'I6',
    'was not delivered',
    (h) =>
      (h.rows = {
        ...h.rows,
        deliveries: [{ ...delivery(2), status: 'pending', deliveredAt: undefined }, delivery(3)],
      }),
  ],
  ['I6', 'but no receiver accepted it', (h) => void h.posts.splice(0, 1)],
  ['I6', 'after it was recorded', (h) => void h.posts.push({ webhookId: 'd2', at: 5_000, status: 503 })],
  ['I6', 'was accepted and posted again', (h) => void h.posts.push({ webhookId: 'd2', at: 1_050, status: 200 })],
  [
    'I6',
    'while another post was in progress',
    (h) =>
      void h.posts.splice(
        0,
        1,
        { webhookId: 'd2', at: 1_001, endedAt: 1_009, status: 503 },
        { ...h.posts[0]!, at: 1_005 },
      ),
  ],
  ['I6', 'came before 2', (h) => void h.posts.splice(0, 2, { ...h.posts[0]!, at: 1_050 }, h.posts[1]!)],
  [
    'I7',
    'a call reported that it is canceled',
    (h) => void h.ends.push({ taskId: task, want: 'canceled', accepted: true }),
  ],
  [
    'I7',
    'was accepted with completed',
    (h) => void h.ends.push({ taskId: task, want: 'canceled', accepted: true, state: 'completed' }),
  ],
  [
    'I8',
    'by the holder of epoch 1 after 2',
    (h) => (h.rows = { ...h.rows, moves: [move('working', 2, 2, 'working', 3, 1)] }),
  ],
  ['I8', 'from a live holder', (h) => (h.rows = { ...h.rows, moves: [{ ...h.rows.moves[0]!, stolen: true }] })],
  ['I8', 'a report of epoch 1', (h) => void h.reports.push({ taskId: task, epoch: 1, at: 990, accepted: true })],
  [
    'I9',
    'showed default data of beta',
    (h) => void h.texts.push({ org: 'default', where: 'a list', text: 'the secret of beta!' }),
  ],
  ['I9', 'was seen (1 times)', (h) => void h.forbidden.push({ what: 'it was seen', happened: true })],
  ['I10', 'idle', (h) => void h.measures.push({ invariant: 'I10', what: 'idle', value: 1, most: 0 })],
];

describe('the checker of recorded runs', () => {
  it('finds no violation in a healthy run', () => {
    expect(check(healthy())).toEqual([]);
  });

  it.each(planted)('%s: finds "%s"', (invariant, words, plant) => {
    const history = healthy();
    plant(history);
    expect(check(history)).toContainEqual({ invariant, what: expect.stringContaining(words) });
  });

  it('accepts a repeat that a fault explains: a message that the new holder sent again', () => {
    const history = healthy();
    history.remoteSends.push({ messageId: 'm2', payload: 'r', at: 900, answeredAt: 910 });
    history.remoteSends.push({ messageId: 'm2', payload: 'r', at: 1_400, answeredAt: 1_410 });
    expect(check(history)).toHaveLength(1);
    history.faults.push({ kind: 'kill', what: 'worker-1', at: 911, until: 912 });
    expect(check(history)).toEqual([]);
  });

  it('accepts a repeat after an unknown outcome: a webhook with no recorded outcome', () => {
    const history = healthy();
    history.posts.push({ webhookId: 'd3', at: 1_050, endedAt: 1_051, status: 200 });
    expect(check(history)).toHaveLength(1);
    history.faults.push({ kind: 'kill', what: 'worker-1', at: 1_010, until: 1_020 });
    expect(check(history)).toEqual([]);
  });
});
