import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';

const major = Number(process.versions.node.split('.')[0]);
const flag = /setFlagsFromString\('(?<flag>[^']+)'\)/.exec(readFileSync(resolve('src/v8-flags.ts'), 'utf8'))?.groups
  ?.flag;

// A caller of the WebAssembly becomes hot, V8 optimises it, and then it loses an assumption while the WebAssembly is
// on its stack: the engine reads `context` through a getter that changes the shape of an object of the caller.
const child = `
  if (process.argv[1]) require('node:v8').setFlagsFromString(process.argv[1]);
  const { preparsePolicySet, statefulIsAuthorized } = require('@cedar-policy/cedar-wasm/nodejs');
  preparsePolicySet('set', { staticPolicies: 'permit(principal, action, resource);' });
  const assumed = { number: 1 };
  let sprung = false;
  const context = { get depth() { if (sprung) assumed.number += 0.5; return 1; } };
  const request = { principal: { type: 'User', id: 'a' }, action: { type: 'Action', id: 'b' },
    resource: { type: 'Skill', id: 'c' }, context, preparsedPolicySetId: 'set', entities: [] };
  function decide() { return statefulIsAuthorized(request).type.length + assumed.number; }
  let sum = 0;
  for (const until = Date.now() + 4000; Date.now() < until; ) sum += decide();
  sprung = true;
  for (let round = 0; round < 1000; round++) sum += decide();
  console.log('alive', sum > 0);
`;

function run(...flags: string[]): SpawnSyncReturns<string> {
  return spawnSync(process.execPath, ['-e', child, ...flags], {
    encoding: 'utf8',
    cwd: resolve('.'),
    env: { PATH: process.env.PATH },
  });
}

describe('a deoptimised caller of Cedar, while Cedar runs', () => {
  it('survives with the flag that every entry point sets first', () => {
    expect(flag).toMatch(/^--/);
    const { status, stdout, signal } = run(flag!);
    expect({ status, signal, stdout }).toEqual({ status: 0, signal: null, stdout: 'alive true\n' });
  });

  (major < 24 ? it : it.skip)('crashes without the flag on Node 20 and 22', () => {
    const { status, stderr } = run();
    expect(status).not.toBe(0);
    expect(stderr).toContain('DoComputeBuiltinContinuation');
  });
});
