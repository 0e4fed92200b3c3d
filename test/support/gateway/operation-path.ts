/** Returns the path of an operation for the objects in `ids`: values by the kind of object. */
export function pathOf(ids: Readonly<Record<string, string>>, method: string, template: string): string {
  const owners = {
    'a2a/tasks': ids.task,
    'api/a2a/agents': ids.agent,
    'api/a2a/published': ids.published,
    'api/a2a/continuations': ids.continuation,
    approvals: ids.approval,
    'api/policies': ids.policy,
    'api/keys': ids.key,
    'api/webhooks/secrets': ids.secret,
    'api/webhooks/configs': 'hook',
    'api/webhooks/deliveries': ids.delivery,
    'mcp/servers': 'matrix',
  };
  const [, id] = Object.entries(owners).find(([part]) => template.includes(part)) ?? ['', ids.decision];
  const isCard = template.endsWith('.json');
  const values: Record<string, string | undefined> = {
    id,
    slug: 'acme',
    sub: 'm',
    sessionId: ids.session,
    credentialId: ids.credential,
    token: 'x'.repeat(86),
    taskId: ids.task,
    contextId: ids.contextId,
    agent: 'mailbox',
    name: isCard ? 'matrix@acme' : 'echo@acme',
    handle: isCard ? 'matrix@acme' : 'echo@acme',
    operation: method === 'POST' ? 'message:send' : 'tasks',
  };
  return template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(values[name]!));
}
