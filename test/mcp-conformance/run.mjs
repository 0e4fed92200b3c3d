// `npm run test:conformance:mcp`: runs the public MCP conformance suites against a gateway with their fixture as a
// registered server, at the door of that server. The suites come from the package registry and run on Node 24.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { nodeFolder } from '../../scripts/node-versions.mjs';
import { root, setUp } from '../../scripts/setup.mjs';
import { startFixture } from './fixture.mjs';

const run = promisify(execFile);
const suiteMs = 300_000;

const suites = [
  { name: '0.1.16', version: '0.1.16', args: ['--suite', 'all'], score: checksOf, wanted: 44 },
  {
    name: '2025-11-25',
    version: '0.2.0-alpha.12',
    args: ['--requirements', '2025-11-25'],
    score: scenariosOf,
    wanted: 30,
  },
  {
    name: '2026-07-28',
    version: '0.2.0-alpha.12',
    args: ['--requirements', '2026-07-28'],
    score: scenariosOf,
    wanted: 37,
  },
];

await setUp();
process.stderr.write(`Node ${process.version}\n`);
const folder = mkdtempSync(join(tmpdir(), 'rialto-conformance-'));
const fixture = await startFixture();
const gateway = spawn(process.execPath, [join(root, 'dist', 'src', 'main.js')], {
  env: {
    PATH: process.env.PATH,
    ...{ NODE_ENV: 'development', PORT: '0', METRICS_PORT: '0', RIALTO_DATA_DIR: join(folder, 'data') },
    // The suites have no credential, and are fast.
    ...{ RIALTO_DEV_ANONYMOUS: 'true', RIALTO_RATE_LIMIT_PRINCIPAL: '1000000', RIALTO_RATE_LIMIT_ORG: '1000000' },
  },
  stdio: ['ignore', 'pipe', 'inherit'],
});

const scores = [];
let failed = false;
try {
  const url = await doorOf(await address());
  for (const suite of suites) {
    // A known flake of the suites themselves: elicitation defaults.
    let result = await scoreOf(suite, url);
    if (result.passed < suite.wanted) result = await scoreOf(suite, url);
    if (result.passed < suite.wanted || result.passed < result.of) {
      failed = true;
      process.stderr.write(`${result.said}\n`);
    }
    scores.push(`${suite.name} ${result.passed}/${result.of}`);
  }
} finally {
  gateway.kill('SIGTERM');
  if (gateway.exitCode === null) await once(gateway, 'exit');
  await fixture.close();
  rmSync(folder, { recursive: true, force: true });
}
process.stdout.write(`${scores.join('\n')}\n`);
process.exit(failed ? 1 : 0);

async function address() {
  let text = '';
  for await (const chunk of gateway.stdout) {
    text += chunk.toString();
    const found = /Rialto is ready on (http:\S+)/.exec(text);
    if (found && text.includes('token')) {
      gateway.stdout.resume();
      return found[1];
    }
  }
  throw new Error(`the gateway ended before it was ready\n${text}`);
}

async function doorOf(url) {
  const token = (await readFile(join(folder, 'data', 'token'), 'utf8')).trim();
  const response = await fetch(`${url}/api/mcp/servers`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ id: 'conformance', url: fixture.url }),
  });
  if (response.status !== 201) throw new Error(`the fixture could not be registered: ${await response.text()}`);
  return `${url}/mcp/servers/conformance`;
}

async function scoreOf({ version, args, score }, url) {
  const out = join(folder, `out-${Date.now()}`);
  const command = [
    'exec',
    '--yes',
    `--package=@modelcontextprotocol/conformance@${version}`,
    '--',
    'conformance',
    'server',
    '--url',
    url,
    ...args,
    '-o',
    out,
  ];
  const env = { ...process.env, PATH: `${await nodeFolder('24')}${delimiter}${process.env.PATH}` };
  const options = { cwd: folder, env, timeout: suiteMs, maxBuffer: 64 * 1024 * 1024 };
  // It exits with 1 when anything fails, what does not count included.
  const { stdout, stderr } = await run('npm', command, options).catch((error) => error);
  const summary = String(stdout).split('=== SUMMARY ===')[1] ?? '';
  return { ...score(summary), said: summary || `${stdout}\n${stderr}` };
}

/** `Total: 44 passed, 0 failed` */
function checksOf(summary) {
  const [, passed = '0', failures = '0'] = /Total: (\d+) passed, (\d+) failed/.exec(summary) ?? [];
  return { passed: Number(passed), of: Number(passed) + Number(failures) };
}

/** A line for each scenario, and at the end once more those that do not count. */
function scenariosOf(summary) {
  const [counted = '', left = ''] = summary.split('Not scored');
  const uncounted = new Set([...left.matchAll(/[✓✗] (\S+) \(/g)].map(([, name]) => name));
  const all = [...counted.matchAll(/([✓✗]) (\S+):/g)].filter(([, , name]) => !uncounted.has(name));
  return { passed: all.filter(([, mark]) => mark === '✓').length, of: all.length };
}
