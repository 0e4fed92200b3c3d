import { compilePolicies } from '../cedar/policy-set.js';
import { DecisionCache, decisionKey } from './decision-cache.js';
import type { PolicyCall } from '../cedar/entities.js';

const setOf = (condition: string) =>
  compilePolicies([{ name: 'p', text: `permit(principal, action, resource) when { ${condition} };` }]);
const call: PolicyCall = {
  principal: { kind: 'user', id: 'bob', role: 'member', groups: ['a', 'b'] },
  action: 'a2a_invoke',
  resource: { type: 'Skill', id: 'ops.deploy' },
  agent: { trustLevel: 'standard', version: '7' },
  surface: 'mcp',
  depth: 0,
  time: 1,
  args: { branch: 'main', text: 'hello' },
};
const blind = setOf('true');

describe('decisionKey', () => {
  it.each<[string, Partial<PolicyCall>]>([
    ['another caller', { principal: { ...call.principal, id: 'eve' } }],
    ['another kind of caller', { principal: { ...call.principal, kind: 'service' } }],
    ['another role', { principal: { ...call.principal, role: 'admin' } }],
    ['another group', { principal: { ...call.principal, groups: ['a'] } }],
    ['groups that join to the same text', { principal: { ...call.principal, groups: ['a,b'] } }],
    ['facts of the caller', { caller: { trustLevel: 'trusted' } }],
    ['another action', { action: 'a2a_cancel' }],
    ['another resource', { resource: { type: 'Skill', id: 'ops.status' } }],
    ['another parent', { resource: { type: 'Skill', id: 'ops.deploy', parent: 'x' } }],
    ['a new version of the facts', { agent: { trustLevel: 'standard', version: '8' } }],
    ['facts without a version', { agent: { trustLevel: 'trusted' } }],
    ['a tool in quarantine', { tool: { quarantined: true } }],
    ['a task', { task: { agent: 'x' } }],
  ])('changes with %s', (_, change) => {
    expect(decisionKey(blind, { ...call, ...change })).not.toBe(decisionKey(blind, call));
  });

  it('is equal for all tasks with the same facts, unless a policy names a single task', () => {
    const task = { agent: 'a', owner: { kind: 'user', id: 'bob' } } as const;
    const read = (id: string): PolicyCall => ({ ...call, action: 'task_read', resource: { type: 'Task', id }, task });
    expect(decisionKey(blind, read('1'))).toBe(decisionKey(blind, read('2')));
    const other = { ...task, owner: { kind: 'user', id: 'eve' } } as const;
    expect(decisionKey(blind, { ...read('1'), task: other })).not.toBe(decisionKey(blind, read('1')));
    const picky = compilePolicies([{ name: 'p', text: 'forbid(principal, action, resource == Task::"1");' }]);
    expect(decisionKey(picky, read('1'))).not.toBe(decisionKey(picky, read('2')));
  });

  it('changes with the set, even when the text is the same', () => {
    expect(decisionKey(setOf('true'), call)).not.toBe(decisionKey(blind, call));
  });

  it('ignores context that no policy reads, and the order of groups', () => {
    const other = { ...call, surface: 'a2a', depth: 3, time: 9, args: { branch: 'dev' } } as const;
    expect(decisionKey(blind, other)).toBe(decisionKey(blind, call));
    const regrouped = { ...call, principal: { ...call.principal, groups: ['b', 'a'] } };
    expect(decisionKey(blind, regrouped)).toBe(decisionKey(blind, call));
  });

  it('covers exactly the context that is read', () => {
    const approval = setOf('context.approved');
    expect(decisionKey(approval, { ...call, approved: true })).not.toBe(decisionKey(approval, call));
    const set = setOf('context.surface == "mcp" && context.input.hasTag("branch")');
    expect(decisionKey(set, { ...call, depth: 3, args: { branch: 'main', text: 'bye' } })).toBe(decisionKey(set, call));
    expect(decisionKey(set, { ...call, surface: 'a2a' })).not.toBe(decisionKey(set, call));
    expect(decisionKey(set, { ...call, args: { branch: 'dev' } })).not.toBe(decisionKey(set, call));
    expect(decisionKey(set, { ...call, args: {} })).not.toBe(decisionKey(set, call));
  });

  it('is undefined when a policy reads the time, or an unreadable argument', () => {
    expect(decisionKey(setOf('context.time > datetime("2026-01-01")'), call)).toBeUndefined();
    const set = setOf('context.input.hasTag("branch")');
    expect(decisionKey(set, { ...call, args: { branch: 'x'.repeat(10_000) } })).toBeUndefined();
  });

  it('stays short', () => {
    const set = setOf('context.input.hasTag("branch")');
    expect(decisionKey(set, { ...call, args: { branch: 'x'.repeat(8_000) } })!.length).toBeLessThan(100);
  });
});

describe('DecisionCache', () => {
  const decision = { allowed: true, policies: ['p'], reason: 'permitted by policy "p"', errors: [] };

  it('keeps the most recently used decisions', () => {
    const cache = new DecisionCache(2);
    cache.set('a', decision);
    cache.set('b', decision);
    cache.get('a');
    cache.set('c', decision);
    expect([cache.get('a'), cache.get('b'), cache.get('c'), cache.size]).toEqual([decision, undefined, decision, 2]);
    cache.clear();
    expect(cache.size).toBe(0);
  });

  it('stores no decision with errors', () => {
    const cache = new DecisionCache();
    cache.set('a', { ...decision, allowed: false, errors: ['the policy engine stopped'] });
    expect(cache.get('a')).toBeUndefined();
  });
});
