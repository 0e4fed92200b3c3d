import { newKeys } from '../../support/clients/new-keys.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { pathOf } from '../../support/gateway/operation-path.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { never } from '../../support/stubs/stub-behaviours.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

const callers = ['nobody', 'admin of another org', 'viewer', 'member', 'admin'] as const;
type Caller = (typeof callers)[number];
type Cells = readonly [number, number, number, number, number];

interface Row {
  /** The status for each caller, in the order of `callers`. */
  readonly cells: Cells;
  readonly body?: () => unknown;
  /** Creates the object of the operation, before each caller. */
  readonly before?: () => Promise<unknown>;
}

describe('abuse 12: every operation for every role', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let spare: StubAgent;
  let busy: StubAgent;
  let upstream: TestUpstream;
  const tokens = {} as Record<Caller, string | null>;
  /** Values of path parameters: objects of the org of viewer, member and admin. */
  const ids: Record<string, string> = {};

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_JWKS: 'default=https://idp.example|https://idp.example/jwks.json' });
    [agent, spare] = [await startStubAgent({ name: 'matrix' }), await startStubAgent({ name: 'spare' })];
    busy = await startStubAgent({ name: 'busy', behaviour: never });
    upstream = await TestUpstream.start();
    tokens.nobody = null;
    tokens['admin of another org'] = await gateway.tokenOf('globex', 'gina', 'admin');
    for (const role of ['viewer', 'member', 'admin'] as const)
      tokens[role] = await gateway.tokenOf('acme', `the ${role}`, role);
  });

  afterAll(async () => {
    await gateway.close();
    await Promise.all([agent, spare, busy, upstream].map((one) => one.close()));
  });

  const admin = (method: string, path: string, body?: unknown) => gateway.call(method, path, body, tokens.admin);
  const anAgent = async () => {
    await admin('POST', '/api/a2a/agents', { url: agent.url, slug: 'matrix' });
    await admin('DELETE', '/api/a2a/agents/spare');
    ids.agent = (await admin('GET', '/api/a2a/agents/matrix')).body.id as string;
  };
  const invocation = () => ({ agentCardId: 'matrix', skillId: 'work' });
  const aPublished = async () => {
    await admin('POST', '/api/a2a/published', published('matrix', { kind: 'http', url: agent.url }));
    await admin('DELETE', '/api/a2a/published/fresh');
    ids.published = (await admin('GET', '/api/a2a/published/matrix')).body.id as string;
  };
  const aPolicy = async () => {
    const text = 'permit(principal == User::"x", action, resource);';
    await admin('POST', '/api/policies', { name: 'matrix', text });
    await admin('DELETE', '/api/policies/fresh');
    ids.policy = (await admin('GET', '/api/policies/matrix')).body.id as string;
  };
  const keyOf = (token: string | null) => gateway.call('POST', '/api/keys', { name: 'k' }, token);
  const aKey = async () => void (ids.key = (await keyOf(tokens.admin)).body.id as string);
  const anApproval = async () => {
    await anEcho();
    const resource = 'PublishedAgent::"asking"';
    const text = `@ask forbid(principal, action == Action::"task_submit", resource == ${resource});`;
    await admin('POST', '/api/policies', { name: 'asking', text });
    await admin('POST', '/api/a2a/published', published('asking', { kind: 'echo' }));
    const asker = await gateway.tokenOf('acme', 'asker');
    const parts = [{ text: `x ${Math.random()}` }];
    const params = { message: { ...message(), parts } };
    await gateway.call('POST', '/a2a/agents/asking@acme', { ...send(), params }, asker);
    ids.approval = (await admin('GET', '/api/approvals?limit=1')).body.items[0].id as string;
  };
  const aMember = () => admin('POST', '/api/orgs/acme/members', { sub: 'm' });
  const erasable = { kind: 'user', id: 'erasable' };
  const anErasable = async () => {
    for (const org of ['acme', 'globex']) await keyOf(await gateway.tokenOf(org, erasable.id, 'admin'));
  };
  const anAct = async () => {
    await admin('POST', '/api/keys', { name: 'k' });
    ids.decision = (await admin('GET', '/api/audit/decisions?limit=1')).body.items[0].id as string;
  };
  const aSession = async () => {
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } };
    const { headers } = await admin('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'initialize', params });
    ids.session = headers.get('mcp-session-id') ?? 'none';
  };
  const published = (name: string, executor: object) => ({ name, description: 'x', executor, a2a_enabled: true });
  const message = () => ({ messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'x' }] });
  const send = () => ({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: message() } });
  const sendSoon = () => ({ ...send(), params: { message: message(), configuration: { returnImmediately: true } } });
  const anEcho = () => admin('POST', '/api/a2a/published', published('echo', { kind: 'echo' }));
  const aTask = async () => {
    await anEcho();
    const { body } = await admin('POST', '/a2a/agents/echo', send());
    [ids.task, ids.contextId] = [body.result.task.id as string, body.result.task.contextId as string];
  };
  const aMailbox = async () => {
    await admin('POST', '/api/a2a/published', published('mailbox', { kind: 'mailbox' }));
    await admin('POST', '/a2a/agents/mailbox', sendSoon());
  };
  const aLease = async () => {
    await aMailbox();
    const { body } = await admin('POST', '/api/mailbox/mailbox/lease');
    [ids.task, ids.epoch] = [body.task.id as string, String(body.leaseEpoch)];
  };
  const aContinuation = async () => {
    await admin('POST', '/api/a2a/agents', { url: busy.url, slug: 'busy', timeoutMs: 1_000 });
    const params = { name: 'busy.work', arguments: {} };
    const { body } = await admin('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params });
    const { taskId } = body.result.structuredContent;
    ids.continuation = (await admin('GET', `/api/a2a/continuations?taskId=${taskId}`)).body.items[0].id as string;
  };
  const aWebhookSecret = async () =>
    void (ids.secret = (await admin('POST', '/api/webhooks/secrets', {})).body.id as string);
  const aConfig = async () => {
    await aMailbox();
    const taskPushNotificationConfig = { id: 'hook', url: `${agent.url}/hook` };
    const params = { message: message(), configuration: { returnImmediately: true, taskPushNotificationConfig } };
    ids.task = (await admin('POST', '/a2a/agents/mailbox', { ...send(), params })).body.result.task.id as string;
  };
  const aDelivery = async () => {
    await aConfig();
    const { task: taskId } = ids;
    await admin('POST', `/api/a2a/tasks/${taskId}/cancel`);
    const gone = { method: 'DeleteTaskPushNotificationConfig', params: { taskId, id: 'hook' } };
    await admin('POST', '/a2a/agents/mailbox', { ...send(), ...gone });
    const made = await admin('GET', `/api/webhooks/deliveries?taskId=${taskId}`);
    ids.delivery = made.body.items[0].id as string;
  };
  const aServer = () => admin('POST', '/api/mcp/servers', { id: 'matrix', url: upstream.url });
  const aCredential = async () => {
    await aServer();
    await admin('PATCH', '/api/mcp/servers/matrix', { userCredentials: 'optional' });
    for (const role of ['member', 'admin'] as const)
      await gateway.call('PUT', '/api/mcp/servers/matrix/credential', credential(), tokens[role]);
    const { body } = await admin('GET', '/api/mcp/servers/matrix/credentials');
    ids.credential = body.items[0].id as string;
  };
  const credential = () => ({ headers: { Authorization: 'Bearer own' } });
  const ping = () => ({ jsonrpc: '2.0', id: 1, method: 'ping' });

  const everyone: Cells = [200, 200, 200, 200, 200];
  /** Each role of the org reads its objects; other orgs do not see them. */
  const readsOwn: Cells = [401, 404, 200, 200, 200];
  const lists: Cells = [401, 200, 200, 200, 200];
  const changesOwn = (status: number): Cells => [401, 404, 403, 403, status];
  const makes = (status: number): Cells => [401, status, 403, 403, status];

  /** A public door. */
  const open = (path: string, ok = 200): Record<string, Row> =>
    Object.fromEntries(
      [['GET', ok] as const, ['HEAD', ok] as const, ['OPTIONS', 204] as const].map(([method, status]) => [
        `${method} ${path}`,
        { cells: [status, status, status, status, status], before: aPublished },
      ]),
    );

  const table: Record<string, Row> = {
    'GET /livez': { cells: everyone },
    'GET /readyz': { cells: everyone },
    'GET /': { cells: everyone },
    'GET /version': { cells: everyone },
    'POST /mcp': { cells: lists, body: ping },
    'GET /mcp': { cells: [401, 405, 405, 405, 405] },
    'DELETE /mcp': { cells: [401, 405, 405, 405, 405] },
    'POST /mcp/servers/{id}': { cells: readsOwn, body: ping, before: aServer },
    'GET /mcp/servers/{id}': { cells: [401, 404, 405, 405, 405], before: aServer },
    'DELETE /mcp/servers/{id}': { cells: [401, 404, 405, 405, 405], before: aServer },
    'POST /a2e': { cells: lists, body: () => ({ type: 'mcp/server/list/req', id: 'm' }) },
    'POST /api/mcp/{sessionId}': { cells: [401, 404, 404, 404, 200], body: ping, before: aSession },
    'GET /api/mcp/{sessionId}': { cells: [401, 404, 404, 404, 200], before: aSession },
    'DELETE /api/mcp/{sessionId}': { cells: [401, 404, 404, 404, 204], before: aSession },
    'GET /api/a2a/agents': { cells: lists },
    'POST /api/a2a/agents': { cells: makes(201), body: () => ({ url: spare.url }), before: anAgent },
    'GET /api/a2a/agents/{id}': { cells: readsOwn, before: anAgent },
    'GET /api/a2a/agents/{id}/card': { cells: readsOwn, before: anAgent },
    'GET /api/a2a/agents/{id}/changes': { cells: readsOwn, before: anAgent },
    'PATCH /api/a2a/agents/{id}': { cells: changesOwn(200), body: () => ({ timeoutMs: 500 }), before: anAgent },
    'POST /api/a2a/agents/{id}/approve': { cells: changesOwn(409), body: () => ({ cardHash: 'x' }), before: anAgent },
    'POST /api/a2a/agents/{id}/refetch': { cells: changesOwn(200), before: anAgent },
    'DELETE /api/a2a/agents/{id}': { cells: changesOwn(204), before: anAgent },
    'POST /api/a2a/invoke': { cells: [401, 404, 403, 200, 200], body: invocation, before: anAgent },
    // Another org has the agent that it registered above; a viewer may call no agent.
    'POST /api/a2a/dispatch': { cells: [401, 200, 422, 200, 200], body: () => ({ workType: 'work' }), before: anAgent },
    'POST /api/a2a/dispatch/explain': { cells: lists, body: () => ({ workType: 'work' }), before: anAgent },
    'GET /api/a2a/dispatches': { cells: lists },
    ...open('/.well-known/agent-card.json'),
    ...open('/.well-known/agent.json'),
    ...open('/.well-known/jwks.json'),
    ...open('/.well-known/audit/{orgId}/jwks.json'),
    ...open('/.well-known/oauth-protected-resource'),
    'GET /.well-known/oauth-authorization-server': { cells: [200, 200, 200, 200, 200] },
    ...open('/.well-known/webfinger', 400),
    'POST /oauth/token': { cells: [400, 400, 400, 400, 400] },
    ...open('/.well-known/oauth-protected-resource/mcp'),
    ...open('/.well-known/oauth-protected-resource/mcp/servers/{id}'),
    ...open('/a2a/agents'),
    ...open('/a2a/agents/{name}/.well-known/agent-card.json'),
    ...open('/a2a/agents/{name}/.well-known/agent.json'),
    ...{ ...open('/a2a/{handle}/agent.json'), ...open('/a2a/{handle}/keys.json') },
    ...open('/a2a/{handle}/.well-known/agent-card.json'),
    ...open('/a2a/{handle}/.well-known/agent.json'),
    'POST /a2a/agents/{name}': { cells: [401, 403, 403, 200, 200], body: send, before: anEcho },
    'POST /a2a/{handle}': { cells: [401, 403, 403, 200, 200], body: send, before: anEcho },
    'POST /a2a': { cells: [401, 404, 403, 200, 200], body: sendSoon, before: anEcho },
    'POST /_agent-native/a2a': { cells: [401, 404, 403, 200, 200], body: sendSoon, before: anEcho },
    'POST /_agent-native/a2a/_process-task': { cells: [401, 401, 401, 401, 401], body: () => ({ taskId: 't' }) },
    'POST /_agent-native/integrations/process-a2a-continuation': {
      cells: [401, 401, 401, 401, 401],
      body: () => ({ continuationId: 'c' }),
    },
    'GET /a2a/agents/{name}/{operation}': { cells: lists, before: anEcho },
    'POST /a2a/agents/{name}/{operation}': {
      cells: [401, 403, 403, 200, 200],
      body: () => ({ message: message() }),
      before: anEcho,
    },
    'DELETE /a2a/agents/{name}/{operation}': { cells: [401, 405, 405, 405, 405], before: anEcho },
    'GET /a2a/tasks/{id}': { cells: [401, 404, 404, 404, 200], before: aTask },
    'POST /a2a/tasks/{id}/cancel': { cells: [401, 404, 404, 404, 200], before: aTask },
    'GET /a2a/tasks/{id}/events': { cells: [401, 404, 404, 404, 200], before: aTask },
    'GET /api/a2a/tasks': { cells: lists },
    'GET /api/a2a/tasks/{id}': { cells: [401, 404, 404, 404, 200], before: aTask },
    'POST /api/a2a/tasks/{id}/cancel': { cells: [401, 404, 404, 404, 409], before: aTask },
    'GET /api/a2a/conversations': { cells: lists },
    'GET /api/a2a/conversations/{contextId}': { cells: [401, 404, 404, 404, 200], before: aTask },
    'GET /api/a2a/continuations': { cells: lists },
    'GET /api/a2a/continuations/{id}': { cells: [401, 404, 404, 404, 200], before: aContinuation },
    'POST /api/a2a/continuations/{id}/retry': { cells: changesOwn(200), before: aContinuation },
    'POST /api/a2a/continuations/{id}/fail': { cells: changesOwn(200), before: aContinuation },
    // Every caller is refused, because the path needs the token of a task.
    'POST /api/a2a/pushes/{token}': { cells: [401, 401, 401, 401, 401], body: message },
    'GET /api/a2a/published': { cells: lists },
    'POST /api/a2a/published': {
      cells: makes(201),
      body: () => published('fresh', { kind: 'echo' }),
      before: aPublished,
    },
    'GET /api/a2a/published/{id}': { cells: readsOwn, before: aPublished },
    'PATCH /api/a2a/published/{id}': { cells: changesOwn(200), body: () => ({ version: '2' }), before: aPublished },
    'POST /api/a2a/published/{id}/keys': { cells: changesOwn(201), body: newKeys, before: aPublished },
    'POST /api/a2a/published/{id}/secret': { cells: changesOwn(201), before: aPublished },
    'DELETE /api/a2a/published/{id}': { cells: changesOwn(204), before: aPublished },
    'POST /api/mailbox/{agent}/lease': { cells: changesOwn(200), before: aMailbox },
    'POST /api/executions/{taskId}/events': {
      // For other members of the org the task does not exist.
      cells: [401, 404, 404, 404, 200],
      body: () => ({ id: 'e', type: 'complete', leaseEpoch: Number(ids.epoch) }),
      before: aLease,
    },
    'GET /api/webhooks/secrets': { cells: lists },
    'POST /api/webhooks/secrets': { cells: makes(201), body: () => ({}) },
    'DELETE /api/webhooks/secrets/{id}': { cells: changesOwn(204), before: aWebhookSecret },
    'GET /api/webhooks/configs': { cells: lists },
    'POST /api/webhooks/configs': {
      cells: [401, 404, 404, 404, 201],
      before: aConfig,
      body: () => ({ taskId: ids.task, url: `${agent.url}/other` }),
    },
    'GET /api/webhooks/configs/{taskId}/{id}': { cells: [401, 404, 404, 404, 200], before: aConfig },
    'POST /api/webhooks/configs/{taskId}/{id}/activate': { cells: changesOwn(200), before: aConfig },
    'POST /api/webhooks/configs/{taskId}/{id}/deactivate': { cells: changesOwn(200), before: aConfig },
    'GET /api/webhooks/deliveries': { cells: lists },
    'GET /api/webhooks/deliveries/summary': { cells: lists },
    'GET /api/webhooks/deliveries/{id}': { cells: [401, 404, 404, 404, 200], before: aDelivery },
    'POST /api/webhooks/deliveries/{id}/redeliver': { cells: changesOwn(409), before: aDelivery },
    'POST /api/webhooks/deliveries/replay': { cells: makes(200), body: () => ({ state: 'dead' }) },
    'POST /api/webhooks/test': { cells: makes(200), body: () => ({ url: `${agent.url}/hook` }) },
    'GET /api/mcp/servers': { cells: lists },
    'POST /api/mcp/servers': {
      cells: makes(201),
      body: () => ({ id: 'fresh', url: upstream.url }),
      before: () => admin('DELETE', '/api/mcp/servers/fresh'),
    },
    'GET /api/mcp/servers/{id}': { cells: readsOwn, before: aServer },
    'PATCH /api/mcp/servers/{id}': { cells: changesOwn(200), body: () => ({ name: 'Other' }), before: aServer },
    'POST /api/mcp/servers/{id}/refresh': { cells: changesOwn(200), before: aServer },
    'POST /api/mcp/servers/{id}/approve': { cells: changesOwn(200), body: () => ({}), before: aServer },
    'DELETE /api/mcp/servers/{id}': { cells: changesOwn(204), before: aServer },
    'GET /api/mcp/servers/{id}/credential': { cells: readsOwn, before: aServer },
    'PUT /api/mcp/servers/{id}/credential': { cells: [401, 404, 403, 200, 200], body: credential, before: aCredential },
    'DELETE /api/mcp/servers/{id}/credential': { cells: [401, 404, 403, 204, 204], before: aCredential },
    'GET /api/mcp/servers/{id}/credentials': { cells: changesOwn(200), before: aServer },
    'GET /api/mcp/servers/{id}/credentials/{credentialId}': { cells: changesOwn(200), before: aCredential },
    'POST /api/mcp/servers/{id}/credentials/{credentialId}/approve': {
      cells: changesOwn(200),
      body: () => ({}),
      before: aCredential,
    },
    'DELETE /api/mcp/servers/{id}/credentials/{credentialId}': { cells: changesOwn(204), before: aCredential },
    'GET /api/mcp/tools': { cells: lists },
    'POST /api/mcp/tools/call': {
      cells: [401, 404, 403, 200, 200],
      body: () => ({ name: 'matrix__echo', arguments: { text: 'x' } }),
      before: aServer,
    },
    'GET /api/approvals': { cells: lists },
    // Of the members, only the approvers and the caller of the act see an approval.
    'GET /api/approvals/{id}': { cells: [401, 404, 404, 404, 200], before: anApproval },
    'POST /api/approvals/{id}': {
      cells: changesOwn(200),
      body: () => ({ decision: 'approve' }),
      before: anApproval,
    },
    'GET /approvals/{id}': { cells: [401, 404, 404, 404, 200], before: anApproval },
    // The body is no form, so an approver gets as far as its fields.
    'POST /approvals/{id}': { cells: [401, 400, 400, 400, 400], body: () => ({}), before: anApproval },
    'GET /api/policies': { cells: lists },
    'POST /api/policies': {
      cells: makes(201),
      body: () => ({ name: 'fresh', text: 'permit(principal == User::"x", action, resource);' }),
      before: aPolicy,
    },
    'GET /api/policies/templates': { cells: lists },
    'GET /api/policies/schema': { cells: lists },
    'POST /api/policies/test': {
      cells: lists,
      body: () => ({ principal: 'User::"x"', action: 'admin_read', resource: 'Org::"acme"' }),
    },
    'GET /api/policies/{id}': { cells: readsOwn, before: aPolicy },
    'GET /api/policies/{id}/versions': { cells: readsOwn, before: aPolicy },
    'PUT /api/policies/{id}': {
      cells: changesOwn(200),
      body: () => ({ text: 'permit(principal == User::"y", action, resource);' }),
      before: aPolicy,
    },
    'DELETE /api/policies/{id}': { cells: changesOwn(204), before: aPolicy },
    'GET /api/orgs': { cells: lists },
    'POST /api/orgs': { cells: [401, 403, 403, 403, 403], body: () => ({ slug: 'another' }) },
    'GET /api/orgs/{slug}': { cells: readsOwn },
    'PATCH /api/orgs/{slug}': { cells: changesOwn(200), body: () => ({ name: 'Acme' }) },
    'GET /api/orgs/{slug}/domains': { cells: readsOwn },
    'PUT /api/orgs/{slug}/domains': { cells: changesOwn(403), body: () => ({ domains: ['acme.example'] }) },
    'GET /api/orgs/{slug}/export': { cells: changesOwn(200) },
    'GET /api/orgs/{slug}/members': { cells: readsOwn },
    'POST /api/orgs/{slug}/members': { cells: changesOwn(201), body: () => ({ sub: 'm' }) },
    'DELETE /api/orgs/{slug}/members/{sub}': { cells: changesOwn(204), before: aMember },
    'POST /api/orgs/{slug}/secret': { cells: changesOwn(201), body: () => ({}) },
    'GET /api/keys': { cells: lists },
    'POST /api/keys': { cells: makes(201), body: () => ({ name: 'k' }) },
    'DELETE /api/keys/{id}': { cells: changesOwn(204), before: aKey },
    'POST /api/tokens/revocations': { cells: makes(204), body: () => ({ jti: 'j' }) },
    'GET /api/audit/events': { cells: lists },
    'GET /api/audit/decisions': { cells: lists },
    'GET /api/audit/decisions/{id}': { cells: readsOwn, before: anAct },
    'POST /api/audit/verify': { cells: lists },
    'GET /api/audit/export': { cells: makes(200) },
    'POST /api/audit/erasures': { cells: makes(200), body: () => erasable, before: anErasable },
    // The last row, because it deletes the org.
    'DELETE /api/orgs/{slug}': { cells: changesOwn(204) },
  };

  /** Returns only the status: an open stream stays open until it is aborted. */
  async function statusOf(method: string, template: string, row: Row, caller: Caller): Promise<number> {
    const leave = new AbortController();
    const token = tokens[caller];
    const response = await fetch(`${gateway.url}${pathOf(ids, method, template)}`, {
      method,
      signal: leave.signal,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(row.body && { 'content-type': 'application/json' }),
        accept:
          method === 'GET' && template.includes('mcp') ? 'text/event-stream' : 'application/json, text/event-stream',
      },
      body: row.body && JSON.stringify(row.body()),
    });
    leave.abort();
    return response.status;
  }

  it('has a row for every operation, and no other', async () => {
    const { paths } = (await gateway.call('GET', '/docs-json')).body as { paths: Record<string, object> };
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations.sort()).toEqual(Object.keys(table).sort());
  });

  it('answers every cell as the table says', async () => {
    const found: Record<string, number[]> = {};
    for (const [operation, row] of Object.entries(table)) {
      const [method, template] = operation.split(' ') as [string, string];
      found[operation] = [];
      for (const caller of callers) {
        await row.before?.();
        found[operation].push(await statusOf(method, template, row, caller));
      }
    }
    expect(found).toEqual(
      Object.fromEntries(Object.entries(table).map(([operation, { cells }]) => [operation, [...cells]])),
    );
  }, 300_000);
});
