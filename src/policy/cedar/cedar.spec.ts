import { CedarEngine, type PolicyDecision } from './cedar.js';
import { developmentPolicy } from './builtin.js';
import type { PolicyCall } from './entities.js';
import { compilePolicies, maxPolicies, type PolicySet } from './policy-set.js';
import { renderTemplate } from './templates.js';
import type { Principal } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';

const alice: Principal = { kind: 'user', id: 'alice', role: 'member', groups: [] };
const deploy: PolicyCall = {
  principal: alice,
  action: 'a2a_invoke',
  resource: { type: 'Skill', id: 'vercel_ops.deploy', parent: 'vercel_ops' },
  surface: 'mcp',
  depth: 0,
  time: Date.UTC(2026, 0, 1),
};
const permitAll = { name: 'all', text: 'permit(principal, action, resource);' };
const example = {
  name: 'no-prod',
  text:
    'forbid(principal, action == Action::"a2a_invoke", resource == Skill::"vercel_ops.deploy") ' +
    'when { context.input.hasTag("branch") && context.input.getTag("branch") == "main" };',
};

const engine = new CedarEngine();
const decide = (rows: { name: string; text: string }[], call: Partial<PolicyCall> = {}): PolicyDecision =>
  engine.decide(compilePolicies(rows), { ...deploy, ...call });

describe('decisions', () => {
  it('RE-33 denies with an empty policy set: no permit matched', () => {
    expect(decide([])).toMatchObject({ allowed: false, policies: [], reason: 'no permit matched', errors: [] });
  });

  it('RE-32 a matching forbid overrides a permit, only for its skill', () => {
    const rows = [
      permitAll,
      { name: 'no-deploy', text: 'forbid(principal, action, resource == Skill::"vercel_ops.deploy");' },
    ];
    const denied = decide(rows);
    expect(denied).toMatchObject({
      allowed: false,
      policies: ['no-deploy'],
      reason: 'forbidden by policy "no-deploy"',
    });
    const other = decide(rows, { resource: { type: 'Skill', id: 'vercel_ops.status' } });
    expect(other).toMatchObject({ allowed: true, policies: ['all'], reason: 'permitted by policy "all"' });
  });

  it('RE-34 decides on the caller, the action and the target', () => {
    const rows = [
      {
        name: 'alice',
        text: 'permit(principal == User::"alice", action == Action::"a2a_invoke", resource in A2AAgent::"vercel_ops");',
      },
    ];
    expect(decide(rows).allowed).toBe(true);
    expect(decide(rows, { principal: { ...alice, id: 'mallory' } }).allowed).toBe(false);
    expect(decide(rows, { principal: { ...alice, kind: 'service' } }).allowed).toBe(false);
    expect(decide(rows, { action: 'a2a_cancel' }).allowed).toBe(false);
    expect(decide(rows, { resource: { type: 'Skill', id: 'other.deploy' } }).allowed).toBe(false);
  });

  it('denies only the branch main with the documented example', () => {
    expect(decide([permitAll, example], { args: { branch: 'main' } })).toMatchObject({
      allowed: false,
      reason: 'forbidden by policy "no-prod"',
    });
    for (const args of [{ branch: 'dev' }, {}, { branch: ['main'] }, { branch: null }] as JsonObject[]) {
      expect(decide([permitAll, example], { args })).toMatchObject({ allowed: true, errors: [] });
    }
  });

  it('RE-74 decides discover and cancel as separate actions', () => {
    const rows = [
      permitAll,
      {
        name: 'hide',
        text: 'forbid(principal, action == Action::"a2a_discover", resource == A2AAgent::"vercel_ops");',
      },
      { name: 'keep', text: 'forbid(principal, action == Action::"a2a_cancel", resource in A2AAgent::"vercel_ops");' },
    ];
    expect(decide(rows, { action: 'a2a_discover', resource: { type: 'A2AAgent', id: 'vercel_ops' } }).policies).toEqual(
      ['hide'],
    );
    expect(decide(rows, { action: 'a2a_discover', resource: { type: 'A2AAgent', id: 'x' } }).allowed).toBe(true);
    expect(decide(rows, { action: 'a2a_cancel' }).policies).toEqual(['keep']);
    expect(decide(rows).allowed).toBe(true);
  });

  it('RE-75 an agent as principal has url, skills and trust level', () => {
    const rows = [
      {
        name: 'trusted',
        text:
          'permit(principal is A2AAgent, action, resource) when { principal.trustLevel == "trusted" && ' +
          'principal.skills.contains("plan") && principal.agentUrl like "https://*" };',
      },
    ];
    const principal: Principal = { kind: 'agent', id: 'planner', role: 'member', groups: [] };
    const caller = { url: 'https://planner.example', skills: ['plan'], trustLevel: 'trusted' };
    expect(decide(rows, { principal, caller }).allowed).toBe(true);
    expect(decide(rows, { principal, caller: { ...caller, trustLevel: 'standard' } }).allowed).toBe(false);
    expect(decide(rows, { principal })).toMatchObject({ allowed: false, errors: [] });
    expect(decide(rows, { principal, agent: caller })).toMatchObject({ allowed: false, errors: [] });
  });

  it('uses one entity with its facts when an agent calls its own skill', () => {
    const principal: Principal = { kind: 'agent', id: 'vercel_ops', role: 'member', groups: ['ops'] };
    const rows = [
      {
        name: 'self',
        text:
          'permit(principal in Group::"ops", action, resource is Skill in A2AAgent::"vercel_ops") ' +
          'when { resource.agent.trustLevel == "trusted" };',
      },
    ];
    expect(decide(rows, { principal, agent: { trustLevel: 'trusted' } })).toMatchObject({ allowed: true, errors: [] });
  });

  it('gives surface, depth and time in the context', () => {
    const rows = [
      {
        name: 'window',
        text:
          'permit(principal, action, resource) ' +
          'when { context.surface == "mcp" && context.depth < 2 && context.time >= datetime("2026-01-01") };',
      },
    ];
    expect(decide(rows).allowed).toBe(true);
    expect(decide(rows, { surface: 'a2a' }).allowed).toBe(false);
    expect(decide(rows, { depth: 2 }).allowed).toBe(false);
    expect(decide(rows, { time: Date.UTC(2025, 11, 31) }).allowed).toBe(false);
  });

  it('denies a call that needs an invalid time, and stays usable', () => {
    const rows = [
      { name: 'window', text: 'permit(principal, action, resource) when { context.time >= datetime("2026-01-01") };' },
    ];
    expect(decide(rows, { time: NaN })).toMatchObject({
      allowed: false,
      errors: [expect.stringContaining('Invalid time')],
    });
    expect(decide(rows).allowed).toBe(true);
  });

  it('denies an action on the wrong kind of resource', () => {
    expect(decide([permitAll], { resource: { type: 'Tool', id: 'x__y' } }).allowed).toBe(false);
  });

  it('evaluates a forbid also with padded arguments, and ignores long arguments that no policy reads', () => {
    const long = { branch: `main${' '.repeat(9_000)}` };
    expect(decide([permitAll, example], { args: long }).reason).toContain('argument "branch" is too long');
    expect(decide([permitAll, example], { args: { text: 'x'.repeat(100_000) } }).allowed).toBe(true);
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`junk${index}`, 'x']));
    expect(decide([permitAll, example], { args: { ...many, branch: 'main' } }).reason).toBe(
      'forbidden by policy "no-prod"',
    );
    const any = {
      name: 'any',
      text: 'forbid(principal, action, resource) when { context.input.hasTag(context.surface) };',
    };
    expect(decide([permitAll, any], { args: many }).allowed).toBe(false);
    expect(decide([permitAll, any], { args: { a: 'x' } }).allowed).toBe(true);
  });

  it('reads an argument also through a literal Input entity', () => {
    const sly = {
      name: 'sly',
      text:
        'forbid(principal, action, resource) ' +
        'when { Input::"input".hasTag("branch") && Input::"input".getTag("branch") == "main" };',
    };
    expect(decide([permitAll, sly], { args: { branch: 'main' } }).policies).toEqual(['sly']);
  });

  it('names a policy by its @id, else by its row, with a number when the row has several', () => {
    const text =
      'permit(principal, action, resource == Skill::"a.a"); ' +
      '@id("mine") permit(principal, action, resource); ' +
      '@id("rialto:guard") permit(principal, action, resource);';
    expect(decide([{ name: 'row', text }]).policies).toEqual(['mine', 'row#3']);
  });
});

describe('malformed text', () => {
  it('denies a lone surrogate each time, before it reaches Cedar', () => {
    const set = compilePolicies([permitAll]);
    for (let round = 0; round < 3_000; round++) {
      const call = { ...deploy, resource: { ...deploy.resource, id: `vercel_ops.\ud800${round}` } };
      expect(engine.decide(set, call).allowed).toBe(false);
    }
    expect(engine.decide(set, { ...deploy, principal: { ...alice, groups: ['\ud800'] } }).reason).toContain(
      'well-formed',
    );
    expect(engine.decide(set, deploy).allowed).toBe(true);
    expect(engine.healthy).toBe(true);
  });
});

describe('abuse 14: policies stored without validation deny and give the reason', () => {
  const planted: [string, string, string][] = [
    [
      'a missing tag',
      'forbid(principal, action, resource) when { context.input.getTag("env") == "prod" };',
      'getTag|tag',
    ],
    ['a typo', 'forbid(principal, action, resource) when { context.inptu == "x" };', 'inptu'],
    ['an unknown entity type', 'forbid(principal is Usr, action, resource);', 'Usr'],
    ['an unknown action', 'forbid(principal, action == Action::"a2a_invok", resource);', 'a2a_invok'],
    ['no Cedar syntax', 'forbid everything!', 'unexpected'],
    ['a template', 'forbid(principal == ?principal, action, resource);', 'template|slot'],
    ['2 MB', `forbid(principal, action, resource) when { "${'x'.repeat(2_000_000)}" == "y" };`, 'larger than 16 KiB'],
    [
      '5,000 policies in one text',
      'forbid(principal, action, resource == Skill::"a.b");'.repeat(5_000),
      'larger than 16 KiB',
    ],
    [
      '200 brackets',
      `forbid(principal, action, resource) when { ${'('.repeat(200)}true${')'.repeat(200)} };`,
      'nested',
    ],
    [
      '500 alternatives',
      `forbid(principal, action, resource) when { ${'context.depth == 9 || '.repeat(160)}false };`,
      'operators',
    ],
    ['a lone surrogate', 'forbid(principal == User::"\ud800", action, resource);', 'well-formed'],
  ];
  it.each(planted)('%s', (_, text, why) => {
    const decision = decide([permitAll, { name: 'planted', text }]);
    expect(decision).toMatchObject({ allowed: false, policies: ['planted'] });
    expect(decision.reason).toMatch(/^policy "planted" could not be evaluated: /);
    expect(decision.reason).toMatch(new RegExp(why));
    expect(decide([permitAll]).allowed).toBe(true);
  });

  it('5,000 rows', () => {
    const rows = Array.from({ length: 5_000 }, (_, index) => ({ name: `p${index}`, text: permitAll.text }));
    expect(decide(rows)).toMatchObject({
      allowed: false,
      reason: expect.stringContaining(`the limit of ${maxPolicies} policies`),
    });
    expect(decide(rows.slice(0, maxPolicies)).allowed).toBe(true);
  });

  it('X2.3 denies by a set that is far over the limits, as older versions could store it', () => {
    const list = (seed: number) => Array.from({ length: 2_600 }, (_, index) => index * 7 + seed).join(',');
    const rows = Array.from({ length: 499 }, (_, index) => ({
      name: `p${index}`,
      text: `forbid(principal, action, resource) when { [${list(index)}].contains(context.depth + 100000) };`,
    }));
    expect(decide([permitAll, ...rows])).toMatchObject({
      allowed: false,
      reason: expect.stringContaining('204000 words'),
    });
    expect(decide([permitAll, ...rows.slice(0, 3)]).allowed).toBe(true);
  });

  it('denies only the actions that a broken policy names, when they are known', () => {
    const rows = [
      permitAll,
      { name: 'planted', text: 'forbid(principal is Usr, action == Action::"a2a_invoke", resource);' },
    ];
    expect(decide(rows).allowed).toBe(false);
    expect(decide(rows, { action: 'a2a_cancel' }).allowed).toBe(true);
  });

  it('names the policy and the reason of an evaluation error', () => {
    const text = 'forbid(principal, action, resource) when { A2AAgent::"absent".trustLevel == "x" };';
    const decision = decide([permitAll, { name: 'asks-elsewhere', text }]);
    expect(decision).toMatchObject({ allowed: false, policies: ['asks-elsewhere'] });
    expect(decision.reason).toMatch(/policy "asks-elsewhere" could not be evaluated: .*absent/);
  });

  it('evaluates the largest policies that the limits accept', () => {
    const nested = (open: string, close: string): string => `${open.repeat(30)}context.depth == 0${close.repeat(30)}`;
    const rows = [
      `${'context.depth == 9 || '.repeat(70)}true`,
      `${'context.depth == 0 && '.repeat(70)}true`,
      nested('(', ')'),
      `${'if context.depth == 9 then false else '.repeat(70)}true`,
      `[${'"x", '.repeat(2_000)}"y"].contains("y")`,
      `context.depth${' + 1'.repeat(70)} == 70`,
      `${'('.repeat(29)}context.depth${' + 1)'.repeat(29)}${' + 1'.repeat(41)} == 70`,
    ].map((body, index) => ({ name: `p${index}`, text: `permit(principal, action, resource) when { ${body} };` }));
    for (const row of rows) expect(decide([row])).toMatchObject({ allowed: true, policies: [row.name] });
    expect(engine.healthy).toBe(true);
  });
});

describe('abuse 15: sets do not mix', () => {
  const openTo = (name: string): { name: string; text: string } => ({
    name,
    text: `permit(principal == User::"${name}", action, resource);`,
  });

  it('parses an evicted set again, and never decides by another set', () => {
    const small = new CedarEngine(2);
    const orgs = ['a', 'b', 'c', 'd', 'e'].map((name) => [name, compilePolicies([openTo(name)])] as const);
    for (let round = 0; round < 3; round++) {
      for (const [name, set] of orgs) {
        for (const id of ['a', 'b', 'c', 'd', 'e']) {
          expect(small.decide(set, { ...deploy, principal: { ...alice, id } }).allowed).toBe(id === name);
        }
        expect(small.resident).toBeLessThanOrEqual(2);
      }
    }
  });

  it('release frees the id for the next set; the released set still gives its own decisions', () => {
    const isolated = new CedarEngine();
    const first = compilePolicies([openTo('alice')]);
    expect(isolated.decide(first, deploy).allowed).toBe(true);
    isolated.releaseSet(first);
    isolated.releaseSet(first);
    expect(isolated.resident).toBe(0);
    const second = compilePolicies([openTo('bob')]);
    expect(isolated.decide(second, deploy).allowed).toBe(false);
    expect(isolated.decide(first, deploy).allowed).toBe(true);
    expect(isolated.resident).toBe(2);
  });

  it('replaces the stored set when it parses an id again, so that memory stays bounded', () => {
    const isolated = new CedarEngine(1);
    const rows = Array.from({ length: 300 }, (_, index) => openTo(`user${index}`));
    const cycle = (): void => {
      const set: PolicySet = compilePolicies([openTo('alice')]);
      isolated.decide(
        { ...set, sources: Object.fromEntries(rows.map(({ text }, index) => [String(index), text])) },
        deploy,
      );
      isolated.releaseSet(set);
    };
    for (let round = 0; round < 20; round++) cycle();
    const before = process.memoryUsage().rss;
    for (let round = 0; round < 150; round++) cycle();
    expect(isolated.idsMade).toBe(1);
    expect(process.memoryUsage().rss - before).toBeLessThan(40_000_000);
  });

  it('gives equal texts one version and two ids', () => {
    const [one, two] = [compilePolicies([permitAll]), compilePolicies([permitAll])];
    expect(one.version).toBe(two.version);
    expect(one.id).not.toBe(two.id);
    expect(compilePolicies([example]).version).not.toBe(one.version);
    expect(engine.decide(one, deploy).version).toBe(one.version);
  });
});

describe('abuse 16 at this level', () => {
  it('compares ids exactly: another spelling is another resource', () => {
    const rows = [{ name: 'one', text: 'permit(principal, action, resource == Skill::"vercel_ops.deploy");' }];
    for (const id of ['Vercel_Ops.deploy', 'vercel_ops.deploy ', 'vercel_ops．deploy', 'a2a_vercel_ops_deploy']) {
      expect(decide(rows, { resource: { type: 'Skill', id } }).allowed).toBe(false);
    }
  });
});

it('RE-76 decides as the title of a rendered template says', () => {
  const rendered = renderTemplate('require-trust-level', { trustLevel: 'standard' });
  const rows = [developmentPolicy, { name: 'trust', text: rendered.ok ? rendered.value : '' }];
  expect(decide(rows, { agent: { trustLevel: 'trusted' } }).allowed).toBe(true);
  expect(decide(rows, { agent: { trustLevel: 'standard' } }).allowed).toBe(true);
  expect(decide(rows, { agent: { trustLevel: 'untrusted' } }).policies).toEqual(['trust']);
  expect(decide(rows).policies).toEqual(['trust']);
});
