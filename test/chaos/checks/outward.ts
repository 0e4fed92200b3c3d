import { groupBy, type Check } from '../history.js';
import type { DeliveryRow, Fault, Post, RemoteSend } from '../history.js';

/** An answer that was read is remembered by a commit within this time, unless its reader is lost. */
const rememberedWithinMs = 1_500;
const slackMs = 5;

/** I4 and I5: a foreign agent sees one message of one send, and again only when nobody could know that it had it. */
const boundedRepeats: Check = function* (history) {
  const { remoteSends, rows } = history;
  for (const [payload, sends] of groupBy(remoteSends, (send) => send.payload)) {
    const ids = new Set(sends.map(({ messageId }) => messageId));
    if (ids.size > 1) yield `'${payload}' went out as ${ids.size} messages`;
  }
  const remembered = new Map<string, number>();
  for (const { remembered: id, at } of rows.moves) if (id !== undefined && !remembered.has(id)) remembered.set(id, at);
  for (const [id, sends] of groupBy(remoteSends, ({ messageId }) => messageId)) {
    const since = remembered.get(id) ?? Infinity;
    if (sends.some(({ at }) => at > since + slackMs)) yield `message ${id} was sent although its remote task was known`;
    for (const [index, send] of sends.entries())
      if (index > 0 && !wasAmbiguous(sends[index - 1]!, history.faults))
        yield `message ${id} was sent again ${send.at - sends[index - 1]!.at} ms after it was answered`;
  }
};

/** Its answer did not leave, or whoever read it may have been lost before it was remembered. */
function wasAmbiguous({ at, answeredAt }: RemoteSend, faults: readonly Fault[]): boolean {
  if (answeredAt === undefined) return true;
  return faults.some(
    (fault) => fault.at <= answeredAt + rememberedWithinMs && (fault.until ?? Infinity) >= at - slackMs,
  );
}

/** I6: every event reaches every receiver, in order, under one id, and again only when nobody could know that it had. */
const webhooks: Check = function* ({ rows, posts, faults }) {
  const byId = groupBy(posts, ({ webhookId }) => webhookId);
  const known = new Set(rows.deliveries.map(({ id }) => id));
  for (const id of byId.keys()) if (!known.has(id)) yield `a webhook came under the id ${id}, which is of no delivery`;
  for (const delivery of rows.deliveries) yield* ofDelivery(delivery, byId.get(delivery.id) ?? [], faults);
  for (const [key, deliveries] of groupBy(rows.deliveries, ({ taskId, configId }) => `${taskId} ${configId}`)) {
    const firsts = deliveries
      .flatMap(({ id, seq }) => (byId.has(id) ? [{ seq, at: byId.get(id)![0]!.at }] : []))
      .sort((a, b) => a.seq - b.seq);
    for (const [index, { seq, at }] of firsts.entries())
      if (index > 0 && at < firsts[index - 1]!.at)
        yield `webhook ${seq} of ${key} came before ${firsts[index - 1]!.seq}`;
  }
};

function* ofDelivery(delivery: DeliveryRow, posts: readonly Post[], faults: readonly Fault[]): Iterable<string> {
  const { id, status, deliveredAt = Infinity } = delivery;
  const isTaken = (post: Post): boolean => post.status >= 200 && post.status < 300;
  if (status === 'pending') yield `webhook ${id} was not delivered`;
  if (status === 'delivered' && !posts.some(isTaken)) yield `webhook ${id} is on record as delivered; nobody took it`;
  if (posts.some(({ at }) => at > deliveredAt + slackMs))
    yield `webhook ${id} was posted after it was on record as delivered`;
  for (const [index, post] of posts.entries()) {
    const before = posts[index - 1];
    if (!before) continue;
    // Between two of them lies a refusal, or something broke: nobody could know that it had been taken.
    const isDoubtful = faults.some(({ at, until = Infinity }) => at <= post.at && until >= before.at);
    if (isTaken(before) && !isDoubtful)
      yield `webhook ${id} was taken and posted again ${post.at - before.at} ms later`;
    else if (post.at < (before.endedAt ?? 0) && !isDoubtful) yield `webhook ${id} was posted twice at once`;
  }
}

export const outwardChecks: readonly (readonly [string, Check])[] = [
  ['I5', boundedRepeats],
  ['I6', webhooks],
];
