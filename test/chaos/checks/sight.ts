import { groupBy, type Check } from '../history.js';
import type { StreamSeen } from '../history.js';

/** Tolerance between the time of a row and the time of a reader on the same machine. */
const slackMs = 3;

/**
 * I3: a reader gets the event numbers in order, a resumed reader gets exactly the missed events, and no event arrives
 * before its commit.
 */
const readers: Check = function* ({ rows, streams }) {
  const committed = new Map(rows.events.map(({ taskId, seq, at }) => [`${taskId} ${seq}`, at]));
  const last = new Map<string, number>();
  for (const { taskId, seq } of rows.events) last.set(taskId, Math.max(seq, last.get(taskId) ?? 0));
  for (const stream of streams) {
    yield* gaps(stream);
    for (const { seq, at, isSnapshot } of stream.frames) {
      const since = committed.get(`${stream.taskId} ${seq}`);
      if (since === undefined && last.has(stream.taskId))
        yield `a reader of ${stream.taskId} saw ${seq}, which does not exist`;
      else if (!isSnapshot && since !== undefined && at < since - slackMs)
        yield `a reader of ${stream.taskId} saw ${seq} ${since - at} ms before its commit`;
    }
  }
};

function* gaps({ taskId, after, frames }: StreamSeen): Iterable<string> {
  const [first] = frames;
  if (first && after !== undefined && first.seq !== after + 1)
    yield `a reader of ${taskId} resumed after ${after} and received ${first.seq}`;
  for (const [index, { seq }] of frames.entries())
    if (index > 0 && seq !== frames[index - 1]!.seq + 1)
      yield `a reader of ${taskId} received ${frames[index - 1]!.seq} and then ${seq}`;
}

/** I9: no org sees data of another org, and forbidden acts do not happen. */
const isolation: Check = function* ({ texts, canaries, forbidden }) {
  for (const { org, where, text } of texts)
    for (const canary of canaries)
      if (canary.org !== org && text.includes(canary.text)) yield `${where} showed ${org} data of ${canary.org}`;
  for (const [what, acts] of groupBy(
    forbidden.filter(({ happened }) => happened),
    (act) => act.what,
  ))
    yield `${what} (${acts.length} times)`;
};

export const sightChecks: readonly (readonly [string, Check])[] = [
  ['I3', readers],
  ['I9', isolation],
];
