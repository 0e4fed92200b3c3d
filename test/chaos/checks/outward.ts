import { groupBy, type Check } from '../history.js';
import type { DeliveryRow, Fault, Post, RemoteSend } from '../history.js';

/** Milliseconds until an answer that was read is committed, unless its reader is lost. */
const rememberedWithinMs = 1_500;
const slackMs = 5;

/**
 * I4 and I5: a foreign agent receives one message per send, and receives it again only when the gateway could not know
 * that it had arrived.
 */
const boundedRepeats: Check = function* (history) {
  const { remoteSends, rows } = history;
  for (const [payload, sends] of groupBy(remoteSends, (send) => send.payload)) {
    const ids = new Set(sends.map(({ messageId }) => messageId));
    if (ids.size > 1) yield `'${payload}' was sent as ${ids.size} messages`;
  }
  const remembered = new Map<string, number>();
  for (const { remembered: id, at } of rows.moves) if (id !== undefined && !remembered.has(id)) remembered.set(id, at);
  for (const [id, sends] of groupBy(remoteSends, ({ messageId }) => messageId)) {
    const since = remembered.get(id) ?? Infinity;
    if (sends.some(({ at }) => at > since + slackMs)) yield `message ${id} was sent although its remote task was known`;
    for (const [index, send] of sends.entries())
      if (index > 0 && !wasAmbiguous(sends[index - 1]!, history.faults))
        yield `message ${id} was sent again ${send.at - sends[index - 1]!.at} ms after its answer`;
  }
};

/** Tells whether the answer was not sent, or its reader may have been lost before the commit. */
function wasAmbiguous({ at, answeredAt }: RemoteSend, faults: readonly Fault[]): boolean {
  if (answeredAt === undefined) return true;
  return faults.some(
    (fault) => fault.at <= answeredAt + rememberedWithinMs && (fault.until ?? Infinity) >= at - slackMs,
  );
}

/**
 * I6: every event reaches every receiver, in order, under one id, and is posted again only when the gateway could not
 * know that it had arrived.
 */
const webhooks: Check = function* ({ rows, posts, faults }) {
  const byId = groupBy(posts, ({ webhookId }) => webhookId);
  const known = new Set(rows.deliveries.map(({ id }) => id));
  for (const id of byId.keys())
    if (!known.has(id)) yield `a webhook was posted under the id ${id} that no delivery has`;
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
  const isAccepted = (post: Post): boolean => post.status >= 200 && post.status < 300;
  if (status === 'pending') yield `webhook ${id} was not delivered`;
  if (status === 'delivered' && !posts.some(isAccepted))
    yield `webhook ${id} is recorded as delivered, but no receiver accepted it`;
  if (posts.some(({ at }) => at > deliveredAt + slackMs))
    yield `webhook ${id} was posted after it was recorded as delivered`;
  for (const [index, post] of posts.entries()) {
    const before = posts[index - 1];
    if (!before) continue;
    // A fault lies between the two posts, so the gateway could not know that the first one was accepted.
    const isDoubtful = faults.some(({ at, until = Infinity }) => at <= post.at && until >= before.at);
    if (isAccepted(before) && !isDoubtful)
      yield `webhook ${id} was accepted and posted again ${post.at - before.at} ms later`;
    else if (post.at < (before.endedAt ?? 0) && !isDoubtful)
      yield `webhook ${id} was posted while another post was in progress`;
  }
}

export const outwardChecks: readonly (readonly [string, Check])[] = [
  ['I5', boundedRepeats],
  ['I6', webhooks],
];
