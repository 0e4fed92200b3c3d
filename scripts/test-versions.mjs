// `node scripts/test-versions.mjs [version …]`: runs the tests that depend most on the version of Node on other
// versions: the unit tests, except those that only read the checkout, the strict readers of the wire format, and one
// spec of each protocol. All other tests run only on the shipped version.
import { readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { nodeFolder } from './node-versions.mjs';
import { root, run, seconds, setUp } from './setup.mjs';

const files = readdirSync(join(root, 'test', 'e2e', 'wire'));
const wire = files.flatMap((file) => (file.endsWith('.spec.ts') ? [`wire/${file.slice(0, -'.spec.ts'.length)}`] : []));
const protocols = ['tasks/tasks', 'a2a-server/grpc', 'mcp-bridge/protocol', 'a2e/socket'];
const specs = [...wire, ...protocols];

await setUp();
const versions = process.argv.length > 2 ? process.argv.slice(2) : ['20', '22', '26'];
for (const version of versions) {
  const started = Date.now();
  const folder = await nodeFolder(version);
  const chosen = { RIALTO_TEST_E2E: specs.join(','), RIALTO_TEST_CHECKOUT: 'no' };
  const env = { ...process.env, PATH: `${folder}${delimiter}${process.env.PATH}`, ...chosen };
  delete env.npm_execpath; // belongs to the version that started this script
  const suite = (name) => run(join(folder, 'node'), [join(root, 'scripts', 'test.mjs'), name], { env });
  // Side by side: the strict readers mostly wait.
  const codes = await Promise.all([suite('unit'), suite('e2e')]);
  const failed = codes.find((code) => code !== 0);
  process.stderr.write(`${failed === undefined ? '✔' : '✘'} Node ${version} ${seconds(started)}\n`);
  if (failed !== undefined) process.exit(failed);
}
