import type { Role } from '../../kernel/call-context.js';
import { actions, type Action } from '../../kernel/verbs.js';
import { builtinPolicies, developmentPolicy, reservedPrefix } from './builtin.js';
import { CedarEngine } from './cedar.js';
import { compilePolicies } from './policy-set.js';
import { judge, parsePolicies, validatePolicyText } from './validate.js';

const engine = new CedarEngine();
const permitAll = { name: 'all', text: 'permit(principal, action, resource);' };
const all = Object.keys(actions) as Action[];

function allowed(rows: { name: string; text: string }[], action: Action, role: Role, groups: string[] = []): boolean {
  const decision = engine.decide(compilePolicies(rows), {
    principal: { kind: 'user', id: 'bob', role, groups },
    action,
    resource: { type: actions[action].resource, id: 'x.y__z' },
    surface: 'rest',
    depth: 0,
    time: 0,
  });
  expect(decision.errors).toEqual([]);
  return decision.allowed;
}

it('has only valid guards, without warnings and with reserved names', () => {
  for (const { name, text } of builtinPolicies) {
    expect(name.startsWith(reservedPrefix)).toBe(true);
    expect(judge(new Map([[name, parsePolicies(text).policies[0]!]]))).toEqual(new Map());
  }
  expect(validatePolicyText(developmentPolicy.name, developmentPolicy.text)).toEqual([]);
});

it('lets a viewer only read, even when the org permits everything', () => {
  const permitted = all.filter((action) => allowed([permitAll], action, 'viewer'));
  expect(permitted.sort()).toEqual([
    'a2a_discover',
    'admin_read',
    'mcp_discover',
    'mcp_read',
    'task_read',
    'task_subscribe',
  ]);
});

it('lets only an admin write to the administration, even when the org permits everything', () => {
  expect(allowed([permitAll], 'admin_write', 'admin')).toBe(true);
  expect(allowed([permitAll], 'admin_write', 'member')).toBe(false);
  expect(allowed([permitAll], 'admin_write', 'member', ['admin'])).toBe(false);
  expect(allowed([permitAll], 'admin_write', 'viewer')).toBe(false);
});

it('denies a call of a tool with an unapproved definition, even when the org permits everything', () => {
  const asked = (quarantined: boolean) =>
    engine.decide(compilePolicies([permitAll]), {
      principal: { kind: 'user', id: 'bob', role: 'admin', groups: [] },
      action: 'mcp_call',
      resource: { type: 'Tool', id: 'files__read' },
      tool: { quarantined },
      surface: 'mcp',
      depth: 0,
      time: 0,
    });
  expect(asked(true)).toMatchObject({ allowed: false, policies: ['rialto:changed-tools-wait'] });
  expect(asked(false)).toMatchObject({ allowed: true });
});

it('lets admins administer and discover, and all members read the administration, without any policy', () => {
  const permitted = (role: Role): Action[] => all.filter((action) => allowed([], action, role));
  expect(permitted('admin').sort()).toEqual([
    'a2a_discover',
    'admin_read',
    'admin_write',
    'approval_decide',
    'mcp_discover',
  ]);
  expect(permitted('member')).toEqual(['approval_decide', 'admin_read']);
  expect(permitted('viewer')).toEqual(['admin_read']);
});

it('permits everything except administration with the development policy', () => {
  const permitted = all.filter((action) => allowed([developmentPolicy], action, 'member'));
  expect(permitted).toEqual(all.filter((action) => action !== 'admin_write'));
  const { reads } = compilePolicies([developmentPolicy]);
  expect([reads.attributes, reads.tags]).toEqual([new Set(), new Set()]);
});
