import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { startStubAgent, type StubAgent, type StubAgentOptions } from '../../support/stubs/stub-agent.js';
import { data } from '../../support/stubs/stub-behaviours.js';

describe('routing: the choice of an agent', () => {
  let gateway: TestGateway;
  let replica: TestGateway;
  let orgId: string;
  const stubs: StubAgent[] = [];
  const ids: Record<string, string> = {};

  async function agent(slug: string, skill: string, options: StubAgentOptions = {}): Promise<StubAgent> {
    const started = await startStubAgent({ name: slug, skills: [{ id: skill }], ...options });
    stubs.push(started);
    const { body } = await gateway.call('POST', '/api/a2a/agents', { url: started.url, slug });
    [ids[slug], orgId] = [body.id, body.orgId];
    await eventually(
      () => candidate(slug, skill, {}, replica),
      (one) => one !== undefined,
    );
    return started;
  }

  beforeAll(async () => {
    gateway = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' });
    replica = await startTestGateway({ RIALTO_CARD_REFRESH_SECONDS: '86400' }, gateway);
  });
  afterAll(async () => {
    await Promise.all(stubs.map((stub) => stub.close()));
    await replica.close();
    await gateway.close();
  });

  const post = (path: string, body: unknown, at = gateway) => at.call('POST', `/api/a2a/${path}`, body, gateway.token);
  const wish = (skill: string, more: object = {}) => ({ workType: skill, requiredSkills: [skill], ...more });
  const explained = async (skill: string, more: object = {}, at = gateway) =>
    (await post('dispatch/explain', wish(skill, more), at)).body;
  const candidate = async (slug: string, skill: string, more: object = {}, at = gateway) =>
    (await explained(skill, more, at)).candidates.find((one: any) => one.agent.slug === slug);
  const outcomes = (slug: string, successes: number, failures: number) =>
    gateway.sql(
      `insert into agent_outcomes as o (agent_id, successes, failures) values ($1, $2, $3)
       on conflict (agent_id) do update set successes = $2, failures = $3`,
      [ids[slug], successes, failures],
    );

  it('RE-66 … RE-72 an explanation has every factor of every agent, and calls no agent', async () => {
    const [able, dear] = [
      await agent('able', 'explain', { costPerTask: 5 }),
      await agent('dear', 'explain', { costPerTask: 50 }),
    ];
    await agent('other', 'something');
    await outcomes('able', 8, 2);
    const { seed, chosen, candidates } = await explained('explain', {
      seed: 7,
      costLimit: 10,
      description: 'explain it all',
    });
    expect([seed, chosen]).toEqual([7, 'able']);
    expect(candidates[0]).toEqual({
      agent: { id: ids.able, slug: 'able', name: 'able' },
      health: 'healthy',
      active: 0,
      successes: 8,
      failures: 2,
      costPerTask: 5,
      skillId: 'explain',
      fit: expect.closeTo(0.9, 5),
      factors: { health: 1, load: 1, cost: 0.75 },
      sampled: expect.any(Number),
      score: expect.any(Number),
      excluded: null,
    });
    const { fit, sampled, score } = candidates[0];
    expect(score).toBeCloseTo(fit * 0.75 * sampled, 10);
    const reasons = Object.fromEntries(candidates.map((one: any) => [one.agent.slug, one.excluded]));
    expect(reasons).toEqual({
      able: null,
      dear: 'a task costs 50, the limit is 10',
      other: 'it lacks the skills: explain',
    });
    expect([...able.requests, ...dear.requests]).toEqual([]);
    const [before] = await gateway.sql('select count(*)::int as n from a2a_task_instances');
    expect(before.n).toBe(0);
  });

  it('a seed explains the same choice that a dispatch with it makes', async () => {
    for (const slug of ['seed_a', 'seed_b', 'seed_c']) await agent(slug, 'seeded');
    const chosen = new Set<string>();
    for (let seed = 0; seed < 12; seed++) {
      const before = await explained('seeded', { seed });
      const { body } = await post('dispatch', wish('seeded', { seed }), seed % 2 ? replica : gateway);
      expect([body.agent.slug, body.chosen]).toEqual([before.chosen, { seed, score: before.candidates[0].score }]);
      chosen.add(before.chosen);
    }
    expect(chosen.size).toBeGreaterThan(1);
  });

  it('RE-71 of 1,000 seeded picks the agent with 90 % success gets over 800', async () => {
    await Promise.all([agent('good', 'sampled'), agent('poor', 'sampled')]);
    await outcomes('good', 90, 10);
    await outcomes('poor', 50, 50);
    let good = 0;
    for (let seed = 0; seed < 1_000; seed += 8) {
      const eight = Array.from({ length: 8 }, (_, index) => explained('sampled', { seed: seed + index }));
      for (const { chosen } of await Promise.all(eight)) if (chosen === 'good') good++;
    }
    expect(good).toBeGreaterThan(800);
  });

  it('RE-72 the outcome of a dispatch affects later choices', async () => {
    const learner = await agent('learner', 'learning');
    await post('dispatch', wish('learning'));
    learner.set((call) => call.send(500, 'no'));
    expect((await post('dispatch', wish('learning'))).status).toBe(502);
    expect(await candidate('learner', 'learning', {}, replica)).toMatchObject({ successes: 1, failures: 1, active: 0 });
  });

  it('RE-61 RE-70 with a limit the cheaper of two equal agents wins, and a costlier one is excluded', async () => {
    const [cheap, dear] = [
      await agent('cheap', 'priced', { costPerTask: 1 }),
      await agent('pricey', 'priced', { costPerTask: 4 }),
    ];
    for (let seed = 0; seed < 20; seed++)
      expect((await explained('priced', { seed, costLimit: 10 })).chosen).toBe('cheap');
    expect(await candidate('pricey', 'priced', { costLimit: 10 })).toMatchObject({
      excluded: 'another agent costs less and is no worse',
      score: null,
    });
    const free = await Promise.all(Array.from({ length: 40 }, (_, seed) => explained('priced', { seed })));
    expect(new Set(free.map(({ chosen }) => chosen))).toEqual(new Set(['cheap', 'pricey']));
    expect((await post('dispatch', wish('priced', { costLimit: 3 }))).body.agent.slug).toBe('cheap');
    const refused = await post('dispatch', wish('priced', { costLimit: 0.5 }));
    expect(refused.body.excluded).toContainEqual({ agent: 'cheap', reason: 'a task costs 1, the limit is 0.5' });
    expect([cheap.requests.length, dear.requests.length]).toEqual([1, 0]);
  });

  describe('load', () => {
    /** Holds every request until the returned function is called. */
    function held(stub: StubAgent): () => void {
      let release: () => void = () => undefined;
      const released = new Promise<void>((resolve) => (release = resolve));
      stub.set(async (call) => {
        await released;
        return data({ ok: true })(call);
      });
      return release;
    }

    it('RE-68 RE-69 five calls halve the weight, ten exclude the agent, and both processes see it', async () => {
      const busy = await agent('busy', 'loaded');
      const release = held(busy);
      const running: Promise<{ status: number }>[] = [];
      const start = async (count: number) => {
        for (let n = 0; n < count; n++)
          running.push(post('invoke', { agentCardId: 'busy', skillId: 'loaded' }, gateway));
        await busy.waitForRequests(running.length);
        return eventually(
          () => candidate('busy', 'loaded', {}, replica),
          ({ active }) => active === running.length,
        );
      };
      expect(await start(4)).toMatchObject({ active: 4, factors: { load: 1 } });
      expect(await start(1)).toMatchObject({ active: 5, factors: { load: 0.5 } });
      const idle = await agent('idle', 'loaded');
      expect((await explained('loaded', {}, replica)).candidates[0].agent.slug).toBeDefined();
      const excluded = 'it has 10 running calls; the maximum is 10';
      expect(await start(5)).toMatchObject({ active: 10, excluded, score: null });
      expect(await candidate('busy', 'loaded')).toMatchObject({ active: 10, excluded });
      for (let seed = 0; seed < 10; seed++)
        expect((await post('dispatch', wish('loaded', { seed }), replica)).body.agent.slug).toBe('idle');
      release();
      for (const { status } of await Promise.all(running)) expect(status).toBe(200);
      expect(await candidate('busy', 'loaded', {}, replica)).toMatchObject({ active: 0, factors: { load: 1 } });
      expect([busy.requests.length, idle.requests.length]).toEqual([10, 10]);
    });

    it('RE-68 of forty concurrent dispatches by two processes, no agent gets an eleventh', async () => {
      const pair = [await agent('left', 'rush'), await agent('right', 'rush')];
      const releases = pair.map(held);
      const rush = Array.from({ length: 40 }, (_, n) => post('dispatch', wish('rush'), n % 2 ? replica : gateway));
      const refused: Awaited<(typeof rush)[number]>[] = [];
      for (const one of rush) void one.then((answer) => refused.push(answer));
      await eventually(
        () => refused.length, // the agents hold all others
        (count) => count === 20,
      );
      await Promise.all(pair.map((stub) => stub.waitForRequests(10)));
      expect(pair.map(({ peakActiveRequests }) => peakActiveRequests)).toEqual([10, 10]);
      releases.forEach((release) => release());
      const statuses = (await Promise.all(rush)).map(({ status }) => status).sort();
      expect(statuses).toEqual([...Array<number>(20).fill(200), ...Array<number>(20).fill(422)]);
      for (const { body } of refused.slice(0, 20))
        expect(body.excluded).toContainEqual({ agent: 'left', reason: 'it has 10 running calls; the maximum is 10' });
      expect((await explained('rush')).candidates[0]).toMatchObject({ active: 0, successes: 10 });
    });

    it('the place of a killed process is free again when its time is over', async () => {
      await agent('haunted', 'ghosts');
      await gateway.sql(
        `insert into a2a_task_instances (id, org_id, agent_id, agent_name, verb, session_id, work_type, status,
           caller, expires_at)
         select gen_random_uuid(), $1, $2, 'haunted', 'v', 's', 'transparent:x', 'active',
           'user:x', now() - interval '1 second'
         from generate_series(1, 10)`,
        [orgId, ids.haunted],
      );
      expect(await candidate('haunted', 'ghosts')).toMatchObject({ active: 0, excluded: null });
      expect((await post('dispatch', wish('ghosts'))).status).toBe(200);
    });
  });
});
