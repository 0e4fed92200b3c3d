import { sendBytes, type SocketAnswer } from '../../support/clients/raw-socket.js';
import { operationsOf, shotOf, type Ground, type Shot } from '../../support/fuzz/fuzz.js';
import { becomesReady, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';

const seed = Number(process.env.RIALTO_FUZZ_SEED ?? 20_260_718);
const shots = Number(process.env.RIALTO_FUZZ_SHOTS ?? 5_000);
const lanes = 8;
const hangMs = 10_000;

/** Tables that refused and read-only requests may grow: denials with their chain, sessions, and data of the queue. */
const mayGrow = new Set([
  ...['audit_events', 'audit_chain', 'audit_pending', 'audit_checkpoints', 'audit_subject_keys'],
  'mcp_sessions',
]);

const changes = new Set(['POST', 'PUT', 'PATCH', 'DELETE']);

/** Requests that change nothing, or only a session. */
const mayBeAccepted = /^(http:\/\/[^/]+)?\/+(api\/audit\/verify|api\/policies\/test|api\/mcp|mcp)/i;
const a2aDoor = /^(http:\/\/[^/]+)?\/+(a2a|_agent-native)/i;

let agent: StubAgent;
let gateway: TestGateway;
let ground: Ground;
const faults: unknown[] = [];
const fault = (error: unknown): void => void faults.push(error);

beforeAll(async () => {
  process.on('unhandledRejection', fault).on('uncaughtExceptionMonitor', fault);
  const inputSchema = { type: 'object', properties: { need: { type: 'string' } }, required: ['need'] };
  agent = await startStubAgent({ name: 'Stub', skills: [{ id: 'work', inputSchema }] });
  gateway = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' });
  const registered = await gateway.call('POST', '/api/a2a/agents', { url: agent.url });
  const { body: policy } = await gateway.call('POST', '/api/policies', {
    name: 'no work for mallory',
    text: 'forbid(principal == User::"mallory", action == Action::"a2a_invoke", resource);',
  });
  const { body: document } = await gateway.call('GET', '/docs-json');
  const sessions = await Promise.all(Array.from({ length: 40 }, openSession));
  ground = {
    operations: operationsOf(document),
    tokens: [gateway.token, await gateway.tokenOf('default', 'vera', 'viewer'), await gateway.tokenOf('acme', 'ann')],
    known: [registered.body.id, registered.body.slug, policy.id, 'default', 'acme', 'vera', ...sessions.slice(0, 2)],
    sessions,
    tool: registered.body.skills[0].toolName,
  };
  await gateway.call('POST', '/api/audit/verify');
});

afterAll(async () => {
  process.off('unhandledRejection', fault).off('uncaughtExceptionMonitor', fault);
  await gateway.close();
  await agent.down();
});

async function openSession(): Promise<string> {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'fuzz', version: '1' } };
  const { headers } = await gateway.call('POST', '/mcp', { jsonrpc: '2.0', id: 1, method: 'initialize', params });
  return headers.get('mcp-session-id')!;
}

/** Returns the contents of every table: a row count, and a hash of the rows that must not change. */
async function contents(): Promise<Record<string, string>> {
  const tables = await gateway.sql<{ name: string }>(
    `select table_name as name from information_schema.tables where table_schema = 'public' order by 1`,
  );
  const found: Record<string, string> = {};
  for (const { name } of tables) {
    if (mayGrow.has(name)) continue;
    const [row] = await gateway.sql(
      `select count(*)::int as rows, md5(coalesce(string_agg(t::text, '|' order by t::text), '')) as hash
       from "${name}" t`,
    );
    found[name] = `${row.rows} rows, ${row.hash}`;
  }
  return found;
}

/** Returns the fault of an answer; undefined when it has none. */
function faultOf({ method, path, lies }: Shot, answer: SocketAnswer | undefined): string | undefined {
  if (!answer) return lies || method === 'CONNECT' ? undefined : 'no answer';
  if (isStalled(path, answer)) return undefined;
  const { status, headers, body } = answer;
  if (status < 200 || status >= 500) return `status ${status}`;
  if (status < 300 && changes.has(method) && !mayBeAccepted.test(path) && !refusedByRpc(path, answer))
    return 'accepted';
  if (/\bat .+\.[jt]s:\d+|node_modules/.test(body)) return 'a stack trace';
  const unread = headers['x-request-id'] === undefined;
  if (unread) return status >= 400 && body === '' ? undefined : 'no X-Request-Id';
  if (method === 'HEAD' || body === '') return undefined;
  const type = headers['content-type'] ?? '';
  if (/^(application\/problem\+json|application\/json)/.test(type)) return jsonFault(status, body);
  if (status < 400) return undefined;
  return /^\/+(docs|admin\/queues|approvals)/i.test(path)
    ? undefined
    : `an error has the content type ${type || 'none'}`;
}

/**
 * Recognizes a probe of a machine that stalled for a while, and only that; the end of the test checks that it is ready
 * again.
 */
function isStalled(path: string, { status, body }: SocketAnswer): boolean {
  if (status !== 503 || path !== '/readyz' || !body.startsWith('{"status":"down"')) return false;
  const checks: { status: string; detail?: string }[] = Object.values(JSON.parse(body).checks);
  return checks.every((check) => check.status !== 'down' || check.detail === 'no answer in time');
}

/** A2A JSON-RPC and A2E refuse with a 200 and a code; a notification gets no answer. */
function refusedByRpc(path: string, { status, body }: SocketAnswer): boolean {
  if (path === '/a2e') return /^\{"type":"mcp\/error",.*"ok":false,"error":\{"code":"/s.test(body);
  return a2aDoor.test(path) && (status === 204 || /^\{"jsonrpc":"2.0","id":.*,"error":\{"code":-/s.test(body));
}

function jsonFault(status: number, body: string): string | undefined {
  let value: any;
  try {
    value = JSON.parse(body);
  } catch {
    return 'no JSON';
  }
  const messages = Array.isArray(value) && value[0]?.jsonrpc ? value : [value];
  for (const message of messages) {
    const code =
      message?.jsonrpc === '2.0'
        ? message.error?.code
        : (message?.code ?? message?.error?.code ?? message?.error?.key ?? message?.error); // RFC 6749: a string
    if (code === 'internal' || code === -32_603) return `an internal error: ${body.slice(0, 300)}`;
    if (status >= 400 && typeof code !== 'string' && typeof code !== 'number') return 'an error without a code';
  }
  return undefined;
}

it(
  'abuse 30, 31, 34, M11: no stranger gets a 5xx, hangs or ends the gateway, or leaves half a change',
  async () => {
    const before = await contents();
    const port = Number(new URL(gateway.url).port);
    const findings: string[] = [];
    const statuses: Record<number, number> = {};
    let next = 0;
    const lane = async (): Promise<void> => {
      for (let number = next++; number < shots; number = next++) {
        const shot = shotOf(seed + number, ground);
        const { answer, hung } = await sendBytes(port, shot.bytes, { hangMs, ...(shot.lies && { leaveAfterMs: 100 }) });
        const wrong = hung ? 'hung' : faultOf(shot, answer);
        statuses[answer?.status ?? 0] = (statuses[answer?.status ?? 0] ?? 0) + 1;
        if (wrong) findings.push(`${seed + number} ${shot.method} ${shot.path.slice(0, 100)}: ${wrong}`);
        if (number % 250 === 0) expect((await gateway.call('GET', '/livez')).status).toBe(200);
      }
    };
    await Promise.all(Array.from({ length: lanes }, lane));

    expect(findings).toEqual([]);
    await becomesReady(gateway);
    expect(faults).toEqual([]);
    expect(gateway.log.filter((line) => line.includes('"level":50') || line.includes('"level":"error"'))).toEqual([]);
    expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    expect(await contents()).toEqual(before);
    expect(agent.requests).toEqual([]);
    expect((await gateway.call('POST', '/api/audit/verify')).body).toMatchObject({ valid: true, unsealed: 0 });
    expect((await gateway.rpc('tools/list')).result.tools).toHaveLength(1);
    // The run reached every kind of door: accepted reads, refusals of each kind, and incorrect requests.
    for (const status of [0, 200, 400, 401, 403, 404, 405, 413, 415]) expect(statuses[status]).toBeGreaterThan(0);
  },
  Math.max(300_000, shots * 100),
);
