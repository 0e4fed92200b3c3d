// `npm run test:peers`, outside CI: published agents and clients of other projects call an echo agent and the tools of
// an MCP server. `PEERS=langgraph,gemini` selects some. Packages go to .cache/peers. It needs a network, no key.
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const root = join(import.meta.dirname, '..', '..');
const cache = join(root, '.cache', 'peers');

const peers = [
  { script: 'adk.mjs', packages: ['@google/adk@latest'], what: 'RemoteA2AAgent in a runner' },
  { script: 'ai-provider.mjs', packages: ['a2a-ai-provider@latest', 'ai@6'], what: 'generateText and streamText' },
  { script: 'mastra.mjs', packages: ['@mastra/client-js@latest'], what: 'client and A2AAgent', node: '24' },
  { script: 'mcp-remote.mjs', packages: ['mcp-remote@latest', '@modelcontextprotocol/sdk@1'], what: 'MCP over stdio' },
  { script: 'inspector.mjs', packages: ['@modelcontextprotocol/inspector@latest'], what: 'MCP, --cli', node: '24' },
  { script: 'ai-mcp.mjs', packages: ['@ai-sdk/mcp@latest', 'ai@6'], what: 'MCP tools of generateText' },
  {
    script: 'langgraph.mjs',
    packages: ['@langchain/mcp-adapters@latest', '@langchain/langgraph@latest', '@langchain/core@latest'],
    what: 'MCP tools in a graph',
  },
  {
    script: 'langgraph-a2a.mjs',
    packages: ['@langchain/langgraph@latest', '@langchain/core@latest', '@a2a-js/sdk@latest'],
    what: 'nodes that find an agent and call it over A2A',
  },
  { script: 'gemini.mjs', packages: ['@google/gemini-cli@latest'], what: 'gemini mcp list' },
];
/** Some of them, by the beginning of their scripts. */
const wanted = process.env.PEERS?.split(',');

const dataDir = mkdtempSync(join(tmpdir(), 'rialto-peers-'));
const gateway = spawn(
  process.execPath,
  ['--import', join(root, 'scripts', 'register-typescript.mjs'), join(root, 'src', 'main.ts')],
  {
    env: {
      PATH: process.env.PATH,
      ...{ NODE_ENV: 'development', PORT: '0', METRICS_PORT: '0', RIALTO_DATA_DIR: dataDir },
      // The provider for the AI SDK has no way to send a credential.
      RIALTO_DEV_ANONYMOUS: 'true',
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  },
);

let failed = 0;
try {
  const url = await address();
  const token = readFileSync(join(dataDir, 'token'), 'utf8').trim();
  await create(url, token, '/api/a2a/published', {
    ...{ name: 'echo', description: 'Repeats each message.', executor: { kind: 'echo' }, a2a_enabled: true },
  });
  const program = join(root, 'test', 'support', 'stubs', 'stdio-upstream.mjs');
  await create(url, token, '/api/mcp/servers', { id: 'own', command: process.execPath, args: [program] });
  for (const peer of peers.filter(({ script }) => !wanted || wanted.some((name) => script.startsWith(name)))) {
    const line = await visit(peer, url, token).catch((error) => {
      failed++;
      return `failed: ${reasonOf(error)}`;
    });
    process.stdout.write(`${nameOf(peer.packages[0])} (${peer.what}): ${line}\n`);
  }
} finally {
  gateway.kill('SIGTERM');
  if (gateway.exitCode === null) await once(gateway, 'exit');
  rmSync(dataDir, { recursive: true, force: true });
}
process.exitCode = failed === 0 ? 0 : 1;

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
  throw new Error('the gateway did not start');
}

async function create(url, token, path, body) {
  const answer = await fetch(`${url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  if (answer.status !== 201) throw new Error(`${path}: ${await answer.text()}`);
}

/** Installs a peer into a folder of its own and runs its script there: the last line it prints is what it heard. */
async function visit({ script, packages, node }, url, token) {
  const folder = join(cache, script.replace('.mjs', ''));
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), '{ "private": true, "type": "module" }\n');
  await run('npm', ['install', '--no-audit', '--no-fund', '--no-save', '--ignore-scripts', ...packages], {
    cwd: folder,
    timeout: 300_000,
  });
  cpSync(join(import.meta.dirname, script), join(folder, script));
  const isOld = node !== undefined && Number(process.versions.node.split('.')[0]) < Number(node);
  const [command, ...args] = isOld ? ['npx', '-y', '-p', `node@${node}`, 'node', script] : [process.execPath, script];
  const { stdout } = await run(command, args, {
    cwd: folder,
    timeout: 120_000,
    env: {
      ...process.env,
      ...{ PEER_BASE: url, PEER_AGENT: `${url}/a2a/agents/echo`, PEER_MCP: `${url}/mcp`, PEER_TOKEN: token },
    },
  });
  const { version } = JSON.parse(
    readFileSync(join(folder, 'node_modules', nameOf(packages[0]), 'package.json'), 'utf8'),
  );
  const heard = stdout.trim().split('\n').at(-1);
  if (!heard.startsWith('OK ')) throw new Error(`it heard: ${heard}`);
  return `${version} ${heard}`;
}

/** The name of a package without its version. */
function nameOf(specifier) {
  return specifier.slice(0, specifier.lastIndexOf('@'));
}

function reasonOf(error) {
  const text = `${error.stderr ?? ''}\n${error.message}`;
  return text.split('\n').find((line) => /error/i.test(line)) ?? error.message;
}
