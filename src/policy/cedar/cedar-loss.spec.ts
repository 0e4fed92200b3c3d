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

/** Imports Cedar with separate modules, because a lost instance is lost for all code that shares it. */
async function isolatedCedar() {
  let modules: unknown[] = [];
  await jest.isolateModulesAsync(async () => {
    modules = [
      await import('@cedar-policy/cedar-wasm/nodejs'),
      await import('./cedar.js'),
      await import('./cedar-guard.js'),
    ];
  });
  const [cedar, { CedarEngine }, { guarded }] = modules as [
    typeof import('@cedar-policy/cedar-wasm/nodejs'),
    typeof import('./cedar.js'),
    typeof import('./cedar-guard.js'),
  ];
  return { checkParsePolicySet: cedar.checkParsePolicySet, CedarEngine, guarded };
}

it('F46 denies every call after a trap in Cedar and reports the engine as unhealthy', async () => {
  const { checkParsePolicySet, CedarEngine, guarded } = await isolatedCedar();
  const engine = new CedarEngine();
  const set = await engine.compile([permitAll]);
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
  expect(engine.decide(await engine.compile([permitAll]), call).allowed).toBe(false);
});
