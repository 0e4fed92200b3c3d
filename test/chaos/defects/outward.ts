import type { Defect } from './defect.js';

/** Defects of outgoing requests: messages to foreign agents, and webhooks. */
export const outwardDefects: readonly Defect[] = [
  {
    name: 'a message is sent again instead of a poll of its task',
    breaks: 'I5',
    scenario: 'remote',
    file: 'continuations/follow/remote-agent.executor',
    edits: [['memo?.messageId === outwardId(run)', 'defect(false)']],
  },
  {
    name: 'the remote task is not stored',
    breaks: 'I5',
    scenario: 'remote',
    file: 'tasks/lifecycle/live-task',
    edits: [['this.current = { ...this.current, memo: update.memo }', 'defect()']],
  },
  {
    name: 'each attempt to send is a new message',
    breaks: 'I5',
    scenario: 'remote',
    file: 'continuations/follow/outward-message',
    edits: [['`${task.id}-${turn}`', '`${task.id}-${turn}-${defect(Math.random())}`']],
  },
  {
    name: 'two workers post the same webhook at the same time',
    breaks: 'I6',
    scenario: 'receivers',
    file: 'webhooks/delivery/delivery.store',
    edits: [
      ['and ${isUnclaimed} ${also}', "and ${defect('true')} and :trust::int >= 0 ${also}"],
      ['and ${isUnclaimed} and not exists', 'and :self::int > 0 and :trust::int >= 0 and not exists'],
    ],
  },
  {
    name: 'webhooks are posted in any order',
    breaks: 'I6',
    scenario: 'receivers',
    file: 'webhooks/delivery/delivery.store',
    edits: [['order by p.seq', "order by p.${defect('id')}"]],
  },
  {
    name: 'each attempt of a webhook has a new id',
    breaks: 'I6',
    scenario: 'receivers',
    file: 'webhooks/delivery/webhook-post',
    edits: [
      ['signatureHeaders(secrets, { id, body,', 'signatureHeaders(secrets, { id: defect(crypto.randomUUID()), body,'],
    ],
  },
  {
    name: 'a webhook is recorded as delivered before it is posted',
    breaks: 'I6',
    scenario: 'receivers',
    file: 'webhooks/delivery/webhook-deliverer',
    edits: [
      [
        'const tried = await this.tryOnce(claimed, rendering)',
        'await defect(this.deliveries.delivered(claimed, { durationMs: 0, status: 200 })); ' +
          'const tried = await this.tryOnce(claimed, rendering)',
      ],
    ],
  },
  {
    name: 'any answer of a receiver counts as accepted',
    breaks: 'I6',
    scenario: 'receivers',
    file: 'webhooks/delivery/retry-plan',
    edits: [['if (status >= 200 && status < 300)', 'if (defect(status >= 200))']],
  },
];
