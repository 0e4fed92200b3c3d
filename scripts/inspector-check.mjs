// Run by hand: calls a running gateway with the command line of the MCP Inspector. It needs Node 22.19, which npx
// installs.
// node scripts/inspector-check.mjs http://127.0.0.1:3000/mcp "$(cat .rialto/token)" [tool] [key=value …]
import { spawnSync } from 'node:child_process';

const [url, token, tool, ...args] = process.argv.slice(2);
if (!url || !token) {
  process.stderr.write('usage: node scripts/inspector-check.mjs <mcp url> <token> [tool] [key=value …]\n');
  process.exit(2);
}

/** Runs one method and returns its parsed output. Ends the check when the method fails. */
function inspect(method, ...more) {
  const inspector = ['-y', '-p', 'node@24', '-p', '@modelcontextprotocol/inspector@2', 'mcp-inspector', '--cli'];
  const header = ['--header', `Authorization: Bearer ${token}`];
  const { status, stdout, stderr, error } = spawnSync(
    'npx',
    [...inspector, url, '--transport', 'http', ...header, '--method', method, ...more],
    { encoding: 'utf8', timeout: 300_000 },
  );
  if (status !== 0) {
    process.stderr.write(`${method} failed (${error?.message ?? `exit ${status}`})\n${stdout}${stderr}`);
    process.exit(1);
  }
  return JSON.parse(stdout);
}

const { tools } = inspect('tools/list');
process.stdout.write(`tools/list: ${tools.length} tools\n${tools.map(({ name }) => `  ${name}\n`).join('')}`);
if (tool) {
  const result = inspect('tools/call', '--tool-name', tool, ...args.flatMap((arg) => ['--tool-arg', arg]));
  process.stdout.write(`tools/call ${tool}: ${JSON.stringify(result)}\n`);
}
