import { groupBy, type Check } from '../history.js';
import type { StreamSeen } from '../history.js';

/** Between the clock of a row and that of a reader on the same machine. */
const slackMs = 3;

/** I3: a reader sees the numbers in order, a resumed one exactly what it missed, and none before it is committed. */
const readers: Check = function* ({ rows, streams }) {
  const committed = new Map(rows.events.map(({ taskId, seq, at }) => [`${taskId} ${seq}`, at]));
  const last = new Map<string, number>();
  for (const { taskId, seq } of rows.events) last.set(taskId, Math.max(seq, last.get(taskId) ?? 0));
  for (const stream of streams) {
    yield* gaps(stream);
    for (const { seq, at, isSnapshot } of stream.frames) {
      const since = committed.get(`${stream.taskId} ${seq}`);
      if (since === undefined && last.has(stream.taskId))
        yield `a reader of ${stream.taskId} saw ${seq}, which is not there`;
      else if (!isSnapshot && since !== undefined && at < since - slackMs)
        yield `a reader of ${stream.taskId} saw ${seq} ${since - at} ms before its commit`;
    }
  }
};

function* gaps({ taskId, after, frames }: StreamSeen): Iterable<string> {
  const [first] = frames;
  if (first && after !== undefined && first.seq !== after + 1)
    yield `a reader of ${taskId} resumed after ${after} and was told ${first.seq}`;
  for (const [index, { seq }] of frames.entries())
    if (index > 0 && seq !== frames[index - 1]!.seq + 1)
      yield `a reader of ${taskId} was told ${frames[index - 1]!.seq} and then ${seq}`;
}

/** I9: nobody is told what is another's, and what is forbidden does not happen. */
const isolation: Check = function* ({ texts, canaries, forbidden }) {
  for (const { org, where, text } of texts)
    for (const canary of canaries)
      if (canary.org !== org && text.includes(canary.text)) yield `${where} told ${org} what belongs to ${canary.org}`;
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
