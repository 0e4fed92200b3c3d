import { checkParsePolicySet } from '@cedar-policy/cedar-wasm/nodejs';
import { CedarEngine } from './cedar.js';
import { guarded } from './cedar-guard.js';
import type { PolicyCall } from './entities.js';

const call: PolicyCall = {
  principal: { kind: 'user', id: 'alice', role: 'member', groups: [] },
  action: 'a2a_invoke',
  resource: { type: 'Skill', id: 'a.b' },
  surface: 'mcp',
  depth: 0,
  time: 0,
};
const permitAll = { name: 'all', text: 'permit(principal, action, resource);' };

it('F46 after a trap in Cedar every call is denied and the engine says it is not healthy', () => {
  const engine = new CedarEngine();
  const set = engine.compile([permitAll]);
  expect(engine.decide(set, { ...call, time: NaN }).allowed).toBe(true);
  expect(engine.healthy).toBe(true);

  const nested = `permit(principal, action, resource) when { ${'('.repeat(200)}true${')'.repeat(200)} };`;
  const answer = guarded<unknown>(
    () => checkParsePolicySet({ staticPolicies: nested }),
    (why) => why,
  );
  expect(answer).toMatch(/out of bounds|call stack/);
  expect(engine.healthy).toBe(false);
  expect(engine.decide(set, call)).toMatchObject({ allowed: false, policies: [] });
  expect(engine.decide(set, call).reason).toContain('the policy engine stopped');
  expect(engine.decide(engine.compile([permitAll]), call).allowed).toBe(false);
});
