import type { CallContext } from '../kernel/call-context.js';
import { VerbBus } from '../kernel/verb-bus.js';
import type { SchemaChecks } from '../platform/schemas/schema-checks.js';
import type { OrgService } from '../policy/org.service.js';
import type { DispatchStore } from './dispatch/dispatch.store.js';
import type { RegistryService } from './registry.service.js';
import { RoutingService } from './routing.service.js';

const ctx = { org: { id: 'o' }, principal: { kind: 'user', id: 'bob' } } as unknown as CallContext;
const wish = { workType: 'review', description: '', requiredSkills: [], args: {}, seed: 7 };

/** Routing over `count` equal agents. `isAllowed` decides on the slug of an agent and the action. */
function routingOver(count: number, isAllowed: (slug: string, action: string) => boolean = () => true) {
  const agents = Array.from({ length: count }, (_, n) => ({
    row: { id: `id-${n}`, slug: `agent_${n}`, name: 'x', quarantinedAt: null, health: 'healthy', timeoutMs: 1_000 },
    card: { description: '', skills: [{ id: 'review', name: 'Review', description: '', tags: [] }] },
    tools: [{ skillId: 'review', canonical: `agent_${n}.review`, alias: '' }],
  }));
  const asked: string[] = [];
  const verbs = new VerbBus({
    decider: ({ action, verb }) => {
      asked.push(action);
      const allowed = isAllowed(verb.split('.')[0]!, action);
      return { allowed, policies: [], reason: allowed ? 'yes' : 'no permit matched' };
    },
  });
  const registry = {
    snapshot: () => Promise.resolve({ agents }),
    mayDiscover: (_: CallContext, slug: string) =>
      verbs.permits({ ctx, verb: slug, action: 'a2a_discover', resource: { type: 'A2AAgent', id: slug } }),
  };
  const store = { records: () => Promise.resolve(new Map()), takePlace: () => Promise.resolve(true) };
  const schemas = { violations: () => Promise.resolve([]) };
  const routing = new RoutingService(
    registry as unknown as RegistryService,
    verbs,
    store as unknown as DispatchStore,
    {} as OrgService,
    schemas as unknown as SchemaChecks,
  );
  return { routing, asked };
}

it('asks policies about one agent when the best one may be called, and chooses the one that is explained', async () => {
  const { routing, asked } = routingOver(1_000);
  const { agent, candidate } = await routing.place(ctx, wish);
  expect(asked).toEqual(['a2a_discover', 'a2a_invoke']);
  const { chosen, candidates } = await routing.choose(ctx, wish);
  expect([chosen?.agent, candidates[0]]).toEqual([agent, candidate]);
});

it('explains 100 of 1,000 agents, and asks policies about no other', async () => {
  const { routing, asked } = routingOver(1_000);
  const { candidates } = await routing.choose(ctx, wish);
  const scores = candidates.map(({ score }) => score!);
  expect([scores.length, asked.length]).toEqual([100, 200]);
  expect(scores).toEqual([...scores].sort((a, b) => b - a));
});

it('chooses the best of the agents that policies permit, and names no hidden one', async () => {
  const isAllowed = (slug: string, action: string) =>
    action === 'a2a_discover' ? !slug.endsWith('1') : slug.endsWith('7') || slug.endsWith('1');
  const { routing } = routingOver(50, isAllowed);
  const { chosen, candidates } = await routing.choose(ctx, wish);
  expect(chosen?.agent.row.slug).toBe(candidates[0]!.agent.slug);
  expect(candidates.map(({ agent }) => agent.slug).filter((slug) => slug.endsWith('1'))).toEqual([]);
  const eligible = candidates.filter(({ excluded }) => excluded === null);
  expect([candidates.length, eligible.length]).toEqual([45, 5]);
  expect((await routing.place(ctx, wish)).agent).toBe(chosen?.agent);
});

it('names 100 of 1,000 agents when none may be called', async () => {
  const { routing, asked } = routingOver(1_000, (_, action) => action === 'a2a_discover');
  const { excluded } = (await routing
    .place(ctx, wish)
    .catch((error: { data: { excluded: object[] } }) => error.data)) as {
    excluded: object[];
  };
  expect(excluded).toHaveLength(100);
  expect(excluded[0]).toEqual({
    agent: 'agent_0',
    reason: 'agent_0.review may not be called: no permit matched',
  });
  expect(asked).toHaveLength(2_000);
});
