import { VerbBus, type VerbEvent } from '../../../src/kernel/verb-bus.js';
import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent } from '../../support/stubs/stub-agent.js';
import { data, failed } from '../../support/stubs/stub-behaviours.js';

describe('GET /api/a2a/dispatches', () => {
  let gateway: TestGateway;
  let agent: StubAgent;
  let other: StubAgent;
  let agentId: string;
  let otherId: string;
  let orgId: string;
  let alice: string;

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' });
    agent = await startStubAgent({ name: 'worker', skills: [{ id: 'work' }], costPerTask: 0.5 });
    other = await startStubAgent({ name: 'other', skills: [{ id: 'else' }] });
    [agentId, orgId] = Object.values(await register(agent, 'worker')) as [string, string];
    [otherId] = Object.values(await register(other, 'other')) as [string];
    alice = await gateway.tokenOf('default', 'alice');
  });
  afterAll(async () => {
    await gateway.close();
    await Promise.all([agent.close(), other.close()]);
  });
  beforeEach(async () => {
    agent.set(data({ done: true }));
    await gateway.sql('delete from a2a_task_instances');
  });

  const register = async ({ url }: StubAgent, slug: string) => {
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url, slug });
    return { id: body.id, orgId: body.orgId };
  };
  const list = async (query = '', token?: string) =>
    (await gateway.call('GET', `/api/a2a/dispatches${query && `?${query}`}`, undefined, token)).body;
  const items = async (query = '', token?: string): Promise<any[]> => (await list(query, token)).items;
  const dispatch = (more: object = {}, token?: string) =>
    gateway.call('POST', '/api/a2a/dispatch', { workType: 'job', requiredSkills: ['work'], ...more }, token);
  const invoke = (more: object = {}, token?: string) =>
    gateway.call('POST', '/api/a2a/invoke', { agentCardId: 'worker', skillId: 'work', ...more }, token);
  /** Inserts rows as another process would; times are milliseconds of one day in May. */
  const plant = (rows: { ms: number; id?: string; status?: string; agent?: string; caller?: string; org?: string }[]) =>
    gateway.sql(
      `insert into a2a_task_instances (id, org_id, agent_id, agent_name, verb, session_id, work_type, status, caller,
         started_at, expires_at)
       select coalesce(r.id, gen_random_uuid()), coalesce(r.org, $2), coalesce(r.agent, $3), 'worker', 'worker.work',
         's', 'explicit:work', coalesce(r.status, 'completed'), coalesce(r.caller, 'user:bob'),
         '2026-05-01T00:00:00Z'::timestamptz + r.ms * interval '1 ms', now() + interval '1 hour'
       from jsonb_to_recordset($1::jsonb) as r(ms float8, id uuid, status text, agent uuid, caller text, org uuid)`,
      [JSON.stringify(rows), orgId, agentId],
    );

  it('RE-63 RE-64 RE-65 one routed and one explicit call, newest first, with every field', async () => {
    const routed = (await dispatch({ args: { branch: 'main' } })).body;
    const named = (await invoke({ args: { n: 1 } })).body;
    const rows = await gateway.sql('select id, work_type, status from a2a_task_instances order by started_at');
    expect(rows).toEqual([
      { id: routed.dispatchId, work_type: 'transparent:job', status: 'completed' },
      { id: named.dispatchId, work_type: 'explicit:work', status: 'completed' },
    ]);
    const [explicit, transparent] = await items();
    expect(transparent).toEqual({
      dispatchId: routed.dispatchId,
      agentId,
      agentName: 'worker',
      skillId: 'work',
      taskId: routed.taskId,
      status: 'completed',
      dispatchType: 'transparent',
      workType: 'job',
      caller: expect.stringMatching(/^service:/),
      input: { branch: 'main' },
      output: { done: true },
      errorCode: null,
      dispatchedAt: expect.stringMatching(/Z$/),
      completedAt: expect.stringMatching(/Z$/),
      latencyMs: expect.any(Number),
      costTokens: 0.5,
    });
    expect(explicit).toMatchObject({
      dispatchId: named.dispatchId,
      dispatchType: 'explicit',
      workType: 'work',
      input: { n: 1 },
    });
    expect(Date.parse(explicit.dispatchedAt)).toBeGreaterThanOrEqual(Date.parse(transparent.dispatchedAt));
    expect(transparent.latencyMs).toBeGreaterThan(0);
    const [decision] = (await gateway.call('GET', `/api/audit/decisions?limit=1`)).body.items;
    expect(decision.id).toBe(named.dispatchId);
  });

  it('RE-64 a bare work type is routed; the call of a tool is explicit, and its content is omitted', async () => {
    await gateway.rpc('tools/call', { name: 'worker.work', arguments: { secret: 'of the tool' } });
    await gateway.sql(`update a2a_task_instances set started_at = now() + interval '1 second'`);
    const [tool] = await items();
    expect(tool).toMatchObject({
      dispatchType: 'explicit',
      workType: 'work',
      input: null,
      output: null,
      costTokens: 0.5,
    });
    expect(tool.taskId).toMatch(/^stub-task-/);
    await plant([{ ms: 0 }]);
    await gateway.sql(
      `update a2a_task_instances set work_type = 'a:b' where verb = 'worker.work' and started_at < now()`,
    );
    expect((await items()).map(({ dispatchType, workType }) => [dispatchType, workType])).toEqual([
      ['explicit', 'work'],
      ['transparent', 'a:b'],
    ]);
  });

  it('RE-62 120 dispatches in pages, without gap or repeat while new ones arrive', async () => {
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (let n = 0; n < 15; n++) await dispatch();
      }),
    );
    const before = (await items('limit=200')).map(({ dispatchId }) => dispatchId as string);
    expect(before).toHaveLength(120);
    let arriving = true;
    const arrivals = (async () => {
      while (arriving) await dispatch();
    })();
    const seen: string[] = [];
    const times: number[] = [];
    let cursor: string | null = null;
    do {
      const page: any = await list(`limit=7${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`);
      for (const { dispatchId, dispatchedAt } of page.items) {
        seen.push(dispatchId);
        times.push(Date.parse(dispatchedAt));
      }
      cursor = page.nextCursor;
    } while (cursor !== null);
    arriving = false;
    await arrivals;
    expect(new Set(seen).size).toBe(seen.length);
    expect(before.filter((id) => !seen.includes(id))).toEqual([]);
    expect(times).toEqual([...times].sort((a, b) => b - a));
    expect((await items()).length).toBe(50);
    expect((await items('limit=200')).length).toBeGreaterThan(120);
  });

  it('RE-62 rows with the same time are distinguished, and a late commit repeats no row', async () => {
    const uuid = (n: number) => `01890000-0000-7000-8000-0000000000${String(n).padStart(2, '0')}`;
    await plant(Array.from({ length: 20 }, (_, n) => ({ ms: n < 15 ? 5 : 5.001, id: uuid(n) })));
    const first = await list('limit=4');
    await plant([
      { ms: 5.0005, id: uuid(50) },
      { ms: 5.002, id: uuid(51) },
    ]);
    const ids: string[] = first.items.map(({ dispatchId }: any) => dispatchId);
    for (let { nextCursor } = first; nextCursor !== null;) {
      const page = await list(`limit=4&cursor=${encodeURIComponent(nextCursor)}`);
      ids.push(...page.items.map(({ dispatchId }: any) => dispatchId));
      ({ nextCursor } = page);
    }
    // A row that came late, after the end of the first page, appears once; one before it does not appear.
    const newestFirst = [19, 18, 17, 16, 15, 50, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0].map(uuid);
    expect(ids).toEqual(newestFirst);
  });

  it('RE-62 RE-65 filters by agent, status, kind and time', async () => {
    await plant([
      { ms: 1, status: 'completed' },
      { ms: 2, status: 'failed' },
      { ms: 3, status: 'active', agent: otherId },
      { ms: 4, status: 'failed', agent: otherId },
    ]);
    await gateway.sql(
      `update a2a_task_instances set work_type = 'transparent:x', pending = true where status = 'active'`,
    );
    const at = (ms: number) => encodeURIComponent(new Date(Date.parse('2026-05-01T00:00:00Z') + ms).toISOString());
    const found = async (query: string) =>
      (await items(query)).map(({ dispatchedAt }) => new Date(dispatchedAt).getUTCMilliseconds());
    expect(await found(`agentId=${agentId}`)).toEqual([2, 1]);
    expect(await found('agentId=other')).toEqual([4, 3]);
    expect(await found('agentId=nobody')).toEqual([]);
    expect(await found('status=failed')).toEqual([4, 2]);
    expect(await found('status=completed')).toEqual([1]);
    expect(await found('status=pending')).toEqual([3]);
    expect(await found('status=running')).toEqual([]);
    expect(await found('kind=transparent')).toEqual([3]);
    expect(await found('kind=explicit')).toEqual([4, 2, 1]);
    expect(await found(`from=${at(2)}&to=${at(4)}`)).toEqual([3, 2]);
    expect(await found(`agentId=${otherId}&status=failed&kind=explicit&from=${at(0)}`)).toEqual([4]);
    for (const query of [
      'status=active',
      'kind=bare',
      'limit=0',
      'limit=201',
      'from=yesterday',
      'unknown=1',
      'cursor=x',
    ])
      expect((await gateway.call('GET', `/api/a2a/dispatches?${query}`)).status).toBe(400);
    const { nextCursor } = await list('limit=1');
    expect((await gateway.call('GET', `/api/a2a/dispatches?status=failed&cursor=${nextCursor}`)).status).toBe(400);
  });

  it('RE-62 is pending until it may be sent, running until it is answered', async () => {
    const [decided, answered] = [gate(), gate()];
    const leave = gateway.gateway.get(VerbBus).subscribe((event) => (isSending(event) ? decided.opened : undefined));
    agent.set(async (call) => {
      await answered.opened;
      return data({ done: true })(call);
    });
    const running = dispatch();
    const status = async () => (await items())[0]?.status;
    await eventually(status, (now) => now === 'pending');
    expect(agent.activeRequests).toBe(0);
    leave();
    decided.open();
    await eventually(status, (now) => now === 'running');
    expect(await items('status=running')).toHaveLength(1);
    answered.open();
    await running;
    expect(await status()).toBe('completed');
  });

  it('a dispatch that is denied after the choice frees its place, and counts for no agent', async () => {
    const [before] = await gateway.sql('select * from agent_outcomes where agent_id = $1', [agentId]);
    const leave = gateway.gateway.get(VerbBus).subscribe((event) => {
      if (isSending(event)) event.context.denied = 'not today';
    });
    expect((await dispatch()).status).toBe(403);
    leave();
    expect(await items()).toMatchObject([{ status: 'failed', errorCode: 'denied', output: null, costTokens: null }]);
    expect(await gateway.sql('select * from agent_outcomes where agent_id = $1', [agentId])).toEqual([before]);
  });

  it('stores no secret, and only the beginning of long values', async () => {
    agent.set(data({ session: { api_key: 'hunter-2', text: 'y'.repeat(50_000) } }));
    await dispatch({ args: { password: 'hunter-2', auth: 'Bearer hunter-2-hunter-2', text: 'x'.repeat(50_000) } });
    const [{ input, output }] = (await items()) as [any];
    for (const stored of [input, output]) {
      expect(stored).toMatchObject({ truncated: true, characters: expect.any(Number) });
      expect(JSON.stringify(stored).length).toBeLessThan(8_192);
    }
    const stored = await gateway.sql('select * from a2a_task_instances');
    expect(JSON.stringify(stored)).not.toContain('hunter-2');
    expect((agent.requests.at(-1)!.json as any).params.message.parts[0].data.password).toBe('hunter-2');
  });

  it('members see their own, admins those of their org, others none', async () => {
    const mallory = await gateway.tokenOf('default', 'mallory');
    const globex = await gateway.tokenOf('globex', 'gina', 'admin');
    await dispatch({}, alice);
    await invoke();
    expect((await items('', alice)).map(({ caller }) => caller)).toEqual(['user:alice']);
    expect(await items('', mallory)).toEqual([]);
    expect(await items()).toHaveLength(2);
    expect(await items('', globex)).toEqual([]);
    expect(await items(`agentId=${agentId}`, globex)).toEqual([]);
    const { nextCursor } = await list('limit=1');
    expect((await gateway.call('GET', `/api/a2a/dispatches?cursor=${nextCursor}`, undefined, globex)).status).toBe(400);
    expect((await gateway.call('GET', `/api/a2a/dispatches?cursor=${nextCursor}`, undefined, alice)).status).toBe(400);
  });

  it('a failure is stored with its task, and costs nothing', async () => {
    agent.set(failed('broken'));
    await dispatch();
    expect(await items()).toMatchObject([
      { status: 'failed', errorCode: 'remote_task_failed', taskId: expect.any(String), output: null, costTokens: null },
    ]);
  });
});

const isSending = ({ phase, action }: VerbEvent): boolean => phase === 'pre-verb' && action === 'a2a_invoke';

function gate(): { opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  return { opened: new Promise<void>((resolve) => (open = resolve)), open: () => open() };
}
