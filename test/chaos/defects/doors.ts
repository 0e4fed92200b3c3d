import type { Defect } from './defect.js';

/** Defects of access control. */
export const doorDefects: readonly Defect[] = [
  {
    name: 'a policy that cannot be evaluated permits',
    breaks: 'I9',
    scenario: 'neighbours',
    file: 'policy/cedar/cedar',
    edits: [['if (failed.length > 0)', 'if (defect(failed.length) < 0)']],
  },
  {
    name: 'tasks of other orgs are visible',
    breaks: 'I9',
    scenario: 'neighbours',
    file: 'tasks/task-verbs',
    edits: [['if (task.orgId !== org.id)', 'if (defect(false))']],
  },
  {
    name: 'redirects of a receiver are followed',
    breaks: 'I9',
    scenario: 'receivers',
    file: 'platform/http/outbound/safe-fetch',
    edits: [["method === 'GET' || method === 'HEAD' ? (request.redirects ?? 0) : 0", 'defect(3)']],
  },
  {
    name: 'the token of a receiver is logged',
    breaks: 'I9',
    scenario: 'receivers',
    file: 'webhooks/delivery/webhook-deliverer',
    edits: [
      [
        'return this.post.send(claimed, post);',
        'return (this.watch.log.info({ hook: defect(post.config.token) }), this.post.send(claimed, post));',
      ],
    ],
  },
];
