import { CedarEngine } from './cedar.js';
import type { PolicyCall } from './entities.js';
import { validatePolicyText } from './validate.js';

const permitAll = { name: 'all', text: 'permit(principal, action, resource);' };
const call: PolicyCall = {
  principal: { kind: 'user', id: 'bob', role: 'member', groups: [] },
  action: 'mcp_call',
  resource: { type: 'Tool', id: 'bank__pay' },
  surface: 'mcp',
  depth: 0,
  time: 1,
  args: { amount: 9 },
};
const asking = (annotations: string, name = 'ask', when = '') => ({
  name,
  text: `${annotations} forbid(principal, action == Action::"mcp_call", resource == Tool::"bank__pay") ${when};`,
});

describe('a policy that asks for an approval', () => {
  const engine = new CedarEngine();
  const decide = async (rows: { name: string; text: string }[], more: Partial<PolicyCall> = {}) =>
    engine.decide(await engine.compile(rows), { ...call, ...more });

  it('denies the call and names the group and the lifetime of the approval', async () => {
    const decision = await decide([permitAll, asking('@ask("finance") @expires("10m")')]);
    expect(decision).toMatchObject({ allowed: false, policies: ['ask'], errors: [] });
    expect(decision.needs).toEqual({ groups: ['finance'], lifetimeMs: 600_000 });
  });

  it('asks admins for 15 minutes by default', async () => {
    const decision = await decide([permitAll, asking('@ask')]);
    expect(decision.needs).toEqual({ groups: ['admin'], lifetimeMs: 900_000 });
  });

  it('wants an approver in the groups of all policies, within the shortest lifetime', async () => {
    const rows = [permitAll, asking('@ask("b") @expires("1h")', 'one'), asking('@ask("a") @expires("2m")', 'two')];
    expect((await decide(rows)).needs).toEqual({ groups: ['a', 'b'], lifetimeMs: 120_000 });
  });

  it('asks nothing when its condition does not match', async () => {
    const rows = [permitAll, asking('@ask', 'ask', 'when { context.input.hasTag("branch") }')];
    expect(await decide(rows)).toMatchObject({ allowed: true });
  });

  it.each([
    ['no permit matches', [asking('@ask')], {}],
    ['another policy forbids', [permitAll, asking('@ask'), asking('', 'never')], {}],
    ['a tool is in quarantine', [permitAll, asking('@ask')], { tool: { quarantined: true } }],
    ['the caller is a viewer', [permitAll, asking('@ask')], { principal: { ...call.principal, role: 'viewer' } }],
    ['a policy is broken', [permitAll, asking('@ask'), { name: 'broken', text: 'forbid(principal' }], {}],
  ] as const)('cannot be approved when %s', async (_, rows, more) => {
    const decision = await decide([...rows], more);
    expect(decision.allowed).toBe(false);
    expect(decision.needs).toBeUndefined();
  });

  it('forbids an action that cannot be approved, also in a text that was stored before', async () => {
    const rows = [permitAll, { name: 'old', text: '@ask forbid(principal, action, resource);' }];
    const read = { action: 'task_read', resource: { type: 'Task', id: 't' } } as const;
    expect(await decide(rows, read)).toMatchObject({ allowed: false });
    expect((await decide(rows, read)).needs).toBeUndefined();
  });

  it.each([
    ['@ask permit(principal, action == Action::"mcp_call", resource);', 'only for a forbid'],
    ['@ask forbid(principal, action, resource);', 'must name its actions'],
    [
      '@ask forbid(principal, action in [Action::"mcp_call", Action::"admin_write"], resource);',
      'must name its actions',
    ],
    ['@ask @expires("8d") forbid(principal, action == Action::"mcp_call", resource);', '@expires must be'],
    ['@ask @expires("soon") forbid(principal, action == Action::"mcp_call", resource);', '@expires must be'],
    ['@expires("1m") forbid(principal, action == Action::"mcp_call", resource);', 'only for a policy with @ask'],
  ])('refuses %s', (text, why) => {
    expect(validatePolicyText('p', text).map(({ description }) => description)).toEqual([expect.stringContaining(why)]);
  });
});
