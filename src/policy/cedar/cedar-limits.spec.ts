import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { endsByItself } from '../../../test/support/gateway/busy.js';
import { CedarEngine } from './cedar.js';
import { compilePolicies } from './policy-set.js';
import type { PolicyCall } from './entities.js';
import { validatePolicyText } from './validate.js';

const invoke: PolicyCall = {
  principal: { kind: 'user', id: 'alice', role: 'member', groups: [] },
  action: 'a2a_invoke',
  resource: { type: 'Skill', id: 'a.b' },
  surface: 'mcp',
  depth: 0,
  time: 0,
};
const permit = (body: string): string =>
  `permit(principal, action == Action::"a2a_invoke", resource is Skill) when { ${body} };`;
const joined = (count: number, operand: string, operator: string): string => Array(count).fill(operand).join(operator);

/** Expressions that are true, by kind, with the given number of operators in one chain. */
const chains: Record<string, (count: number) => string> = {
  '&&': (count) => joined(count + 1, 'context.depth == 0', ' && '),
  '||': (count) => `${'context.depth == 9 || '.repeat(count)}true`,
  'bare &&': (count) => joined(count + 1, 'true', '&&'),
  '+': (count) => `context.depth${' + 1'.repeat(count)} == ${count}`,
  '-': (count) => `context.depth${'-1'.repeat(count)} == -${count}`,
  '*': (count) => `context.depth${' * 1'.repeat(count)} == 0`,
  '<': (count) => joined(count + 1, '1 < 2', ' && '),
  is: (count) => joined(count + 1, 'principal is User', ' && '),
  if: (count) => `${'if context.depth == 9 then false else '.repeat(count)}true`,
  calls: (count) => `context.time${'.toDate()'.repeat(count + 1)} == context.time`,
};

// Runs the TypeScript source directly. The time limit ends a process that hangs.
const child = `
  const { transformSync } = require('@swc/core');
  const Module = require('node:module');
  const { existsSync, readFileSync } = require('node:fs');
  const path = require('node:path');
  const find = Module._resolveFilename;
  Module._resolveFilename = function (name, parent, ...rest) {
    const source = parent?.filename && path.resolve(path.dirname(parent.filename), name.replace(/\\.js$/, '.ts'));
    const isSource = name.startsWith('.') && source.endsWith('.ts') && existsSync(source);
    return isSource ? source : find.call(this, name, parent, ...rest);
  };
  const jsc = { parser: { syntax: 'typescript', decorators: true }, target: 'es2022' };
  const options = { swcrc: false, module: { type: 'commonjs' }, jsc };
  const load = (module, filename) =>
    module._compile(transformSync(readFileSync(filename, 'utf8'), { filename, ...options }).code, filename);
  Module._extensions['.ts'] = load;
  const { validatePolicyText, parsePolicies } = require(path.resolve('src/policy/cedar/validate.ts'));
  const { cedarLoss, guarded } = require(path.resolve('src/policy/cedar/cedar-guard.ts'));
  const { checkParsePolicySet } = require('@cedar-policy/cedar-wasm/nodejs');
  const { texts, trap } = JSON.parse(readFileSync(0, 'utf8'));
  let refused = 0;
  for (const text of texts) if (validatePolicyText('long', text).length > 0) refused++;
  const intact = cedarLoss() === undefined;
  let reached = 0;
  const checkTrap = () => {
    reached++;
    return checkParsePolicySet({ staticPolicies: trap });
  };
  for (let round = 0; round < 50; round++) guarded(checkTrap, String);
  const after = validatePolicyText('plain', 'permit(principal, action, resource);');
  const lost = cedarLoss() !== undefined;
  console.log(JSON.stringify({ refused, intact, reached, lost, after: after[0]?.description }));
`;

it('abuse 14: the process still answers after fifty long chains, and makes no call into Cedar after a trap', () => {
  const texts = Array.from({ length: 50 }, (_, round) => Object.values(chains)[round % 10]!(990)).map(permit);
  const trap = permit(`${'('.repeat(200)}true${')'.repeat(200)}`);
  const { stdout, signal, stderr } = spawnSync(process.execPath, ['-e', child], {
    input: JSON.stringify({ texts, trap }),
    encoding: 'utf8',
    cwd: resolve('.'),
    env: { PATH: process.env.PATH },
    timeout: 60_000,
  });
  expect({ signal, stderr }).toEqual({ signal: null, stderr: '' });
  expect(JSON.parse(stdout)).toEqual({
    refused: 50,
    intact: true,
    reached: 1,
    lost: true,
    after: expect.stringMatching(/^could not be checked: the policy engine stopped/),
  });
}, 70_000);

it.each(Object.keys(chains))(
  'abuse 14: the longest chain of %s works a thousand times, a longer one is refused',
  (kind) => {
    const engine = new CedarEngine();
    const text = permit(chains[kind]!(70));
    for (let round = 0; round < 50; round++) expect(validatePolicyText('long', text)).toEqual([]);
    const set = compilePolicies([{ name: 'long', text }]);
    let allowed = 0;
    for (let round = 0; round < 1_000; round++) if (engine.decide(set, invoke).allowed) allowed++;
    expect(allowed).toBe(1_000);
    expect(engine.healthy).toBe(true);
    expect(validatePolicyText('long', permit(chains[kind]!(72)))[0]?.description).toMatch(/more than 70 operators/);
  },
);

describe('long texts with few operators', () => {
  it.each([
    ['a list', `[${joined(2_000, '"x"', ', ')}].contains("x")`],
    ['a list of negative numbers', `[${joined(500, '-1', ', ')}].contains(-1)`],
    ['attributes of many operands', joined(60, 'context.depth == 0', ' && ')],
    ['tags', joined(30, 'context.input.hasTag("x") && context.input.getTag("x") == "y"', ' || ')],
  ])('%s is accepted', (_, body) => expect(validatePolicyText('flat', permit(body))).toEqual([]));
});

it('abuse 14: counts chained calls also when they have arguments', () => {
  for (const args of ['1, 1', '1 == 1', 'if true then 1 else 1']) {
    expect(validatePolicyText('calls', permit(`context.a${`.f(${args})`.repeat(300)}`))[0]?.description).toMatch(
      /operators/,
    );
  }
});

it('abuse 14: counts records and lists in a list, because each makes strict validation slow', () => {
  for (const item of ['{a: 1}', '[1]']) {
    expect(
      validatePolicyText('costly', permit(`[${joined(80, item, ', ')}].contains(${item})`))[0]?.description,
    ).toMatch(/operators/);
  }
});

describe('abuse 14: `like` is bounded', () => {
  const like = (pattern: string, count = 1): string =>
    permit(`context.input.hasTag("x") && (${joined(count, `context.input.getTag("x") like "${pattern}"`, ' || ')})`);

  it.each([
    ['eleven of them', like('a*', 11), /more than 10 `like`/],
    ['a long pattern', like('a'.repeat(97)), /more than 96 characters/],
    ['many wildcards', like('*a*b*c*d*'), /more than 4 wildcards/],
    ['a comment before the pattern', permit(`"x" like // "a"\n "*a*b*c*d*"`), /more than 4 wildcards/],
  ])('%s is refused', (_, text, description) => {
    expect(validatePolicyText('like', text)[0]?.description).toMatch(description);
  });

  it('ten long patterns on the longest argument are decided in time', () => {
    const engine = new CedarEngine();
    const text = like(`*${'a'.repeat(94)}b`, 10);
    expect(validatePolicyText('like', text)).toEqual([]);
    expect(validatePolicyText('stars', like('a\\*\\*\\*\\*\\*b'))).toEqual([]);
    const set = compilePolicies([{ name: 'like', text }]);
    const call = { ...invoke, args: { x: 'a'.repeat(8_190) } };
    const decisions: unknown[] = [];
    endsByItself(() => {
      while (decisions.length < 100) decisions.push(engine.decide(set, call));
    });
    expect(decisions).toEqual(Array(100).fill(expect.objectContaining({ allowed: false, errors: [] })));
  });
});
