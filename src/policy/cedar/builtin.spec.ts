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

it('every guard is valid, without a warning, and carries the reserved name', () => {
  for (const { name, text } of builtinPolicies) {
    expect(name.startsWith(reservedPrefix)).toBe(true);
    expect(judge(new Map([[name, parsePolicies(text).policies[0]!]]))).toEqual(new Map());
  }
  expect(validatePolicyText(developmentPolicy.name, developmentPolicy.text)).toEqual([]);
});

it('a viewer only reads, whatever the org permits', () => {
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

it('only an admin writes to the administration, whatever the org permits', () => {
  expect(allowed([permitAll], 'admin_write', 'admin')).toBe(true);
  expect(allowed([permitAll], 'admin_write', 'member')).toBe(false);
  expect(allowed([permitAll], 'admin_write', 'member', ['admin'])).toBe(false);
  expect(allowed([permitAll], 'admin_write', 'viewer')).toBe(false);
});

it('a tool whose definition nobody approved is not called, whatever the org permits', () => {
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

it('without any policy an admin administers and sees what there is, everyone of the org reads the administration', () => {
  const permitted = (role: Role): Action[] => all.filter((action) => allowed([], action, role));
  expect(permitted('admin').sort()).toEqual(['a2a_discover', 'admin_read', 'admin_write', 'mcp_discover']);
  expect(permitted('member')).toEqual(['admin_read']);
  expect(permitted('viewer')).toEqual(['admin_read']);
});

it('the development policy permits everything but administration', () => {
  const permitted = all.filter((action) => allowed([developmentPolicy], action, 'member'));
  expect(permitted).toEqual(all.filter((action) => action !== 'admin_write'));
  const { reads } = compilePolicies([developmentPolicy]);
  expect([reads.attributes, reads.tags]).toEqual([new Set(), new Set()]);
});
