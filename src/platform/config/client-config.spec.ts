import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { readMcpConfig } from './client-config.js';
import { declaredServers } from './declared-servers.js';
import { loadOperatorSettings, loadSettings } from './settings.js';

const folder = mkdtempSync(join(tmpdir(), 'rialto-client-config-'));
const file = join(folder, 'mcp.json');
afterAll(() => rmSync(folder, { recursive: true }));

function read(content: string | object, env: Record<string, string> = {}) {
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content));
  const problems: string[] = [];
  const clientServers = readMcpConfig(file, problems);
  const servers = declaredServers({}, clientServers, env, problems);
  return { problems, servers: JSON.parse(JSON.stringify(servers)) as object[] };
}

const node = { command: 'node' };
const web = { url: 'https://a.example/mcp' };
const program = { id: 'a', name: 'a', isAgent: true, ...node };
const remote = { id: 'a', name: 'a', isAgent: true, ...web };
const filled = { ...remote, headers: { k: 'v' } };

describe('C36 the MCP configuration file of a client', () => {
  it.each<[string, string | object, object]>([
    [
      'VS Code, mcp.json',
      { servers: { a: { type: 'stdio', ...node } }, inputs: [] },
      { ...program, transport: 'stdio' },
    ],
    ['VS Code, settings.json', { 'editor.tabSize': 2, mcp: { inputs: [], servers: { a: node } } }, program],
    ['Zed', { context_servers: { a: { source: 'custom', enabled: true, ...node } } }, program],
    ['Claude Desktop', { globalShortcut: '', mcpServers: { a: node } }, program],
    ['line comments', '{ // mine\n"mcpServers": { "a": { "command": "node" } } } // end', program],
    ['block comments', '/* "x" */{"mcpServers":{"a":/* , */{"command":"node"/**/}}}', program],
    [
      'trailing commas',
      '{"mcpServers":{"a":{"command":"node","args":["x", // one\n],},},}',
      { ...program, args: ['x'] },
    ],
    ['a byte order mark', '\uFEFF{"mcpServers":{"a":{"command":"node"}}}', program],
    [
      'comment marks inside strings',
      '{"mcpServers":{"a":{"url":"https://a.example/mcp","headers":{"k":"\\"//,]/*"}}}}',
      { ...remote, headers: { k: '"//,]/*' } },
    ],
    [
      'numbers and flags',
      { mcpServers: { a: { ...node, args: ['-p', 80], env: { PORT: 8080, DEBUG: true, NO: null } } } },
      { ...program, args: ['-p', '80'], env: { PORT: '8080', DEBUG: 'true' } },
    ],
    [
      'Copilot, local',
      { mcpServers: { a: { type: 'local', tools: ['*'], ...node } } },
      { ...program, transport: 'stdio' },
    ],
    ['remote', { mcpServers: { a: { type: 'remote', ...web } } }, { ...remote, transport: 'http' }],
    [
      'Cline, streamableHttp',
      { mcpServers: { a: { type: 'streamableHttp', ...web } } },
      { ...remote, transport: 'streamableHttp' },
    ],
    ['Windsurf, serverUrl', { mcpServers: { a: { serverUrl: web.url, env: {} } } }, remote],
    ['Gemini CLI, httpUrl', { mcpServers: { a: { httpUrl: web.url, args: [], trust: false } } }, remote],
    ['a program with empty headers', { mcpServers: { a: { ...node, headers: {}, args: [] } } }, program],
    ['seconds', { mcpServers: { a: { ...node, timeout: 60, autoApprove: [] } } }, { ...program, timeoutMs: 60_000 }],
    ['milliseconds', { mcpServers: { a: { ...node, timeout: 30_000 } } }, { ...program, timeoutMs: 30_000 }],
    ['env placeholders', { mcpServers: { a: { ...web, headers: { k: '${env:K}' } } } }, filled],
    ['placeholders with a default', { mcpServers: { a: { ...web, headers: { k: '${NONE:-v}' } } } }, filled],
  ])('is read: %s', (_, content, expected) => {
    expect(read(content, { K: 'v' })).toEqual({ problems: [], servers: [expected] });
  });

  it.each<[string, string | object, RegExp]>([
    [
      'input',
      { servers: { a: { ...web, headers: { k: 'Bearer ${input:api-key}' } } } },
      /\$\{input:api-key\} .* "a" .*\$\{API_KEY\}/,
    ],
    [
      'command',
      { servers: { a: { command: '${command:python.path}' } } },
      /\$\{command:python.path\} .*\$\{PYTHON_PATH\}/,
    ],
    [
      'workspaceFolder',
      { servers: { a: { ...node, args: ['${workspaceFolder}/x'] } } },
      /workspaceFolder is named by the MCP server "a"/,
    ],
    [
      'envFile',
      { servers: { a: { ...node, envFile: '.env' } } },
      /servers\.a\.envFile: is not supported: list its variables in env/,
    ],
    ['a wrong member', { mcp: { servers: { a: { command: ['node'] } } } }, /mcp\.servers\.a\.command: /],
    [
      'an incomplete file',
      '{ // one\n "mcpServers": {"a" canary }',
      /cannot be read as JSON: (?!.*canary).*(?:line 2|at position 2\d)|it is not JSON/,
    ],
  ])('(P16) reports a problem with its place: %s', (_, content, expected) => {
    const { problems } = read(content);
    expect(problems).toEqual([expect.stringMatching(expected)]);
  });

  it('a variable that it names and that is not set stops the gateway, but no command that needs no server', () => {
    writeFileSync(file, '{"mcpServers":{"a":{"url":"https://a.example/mcp","headers":{"k":"${NONE}"}}}}');
    const env = { NODE_ENV: 'test', RIALTO_MCP_CONFIG_FILE: file, RIALTO_DATA_DIR: folder };
    expect(() => loadSettings(env)).toThrow('NONE is named by the MCP server "a" and is not set');
    expect(loadOperatorSettings(env)).toMatchObject({ RIALTO_MCP_CONFIG_FILE: file });
    expect(() => loadOperatorSettings({ ...env, PORT: 'x' })).toThrow(/^PORT/);
  });

  it('is read in linear time', () => {
    const hostile = '{"mcpServers":{}}' + '/**/'.repeat(100_000) + '/*' + '/'.repeat(500_000) + '*/';
    expect(read(hostile)).toEqual({ problems: [], servers: [] });
    expect(read('{"mcpServers":{}' + ','.repeat(500_000) + '}').problems).toHaveLength(1);
  });

  it('leaves out disabled servers', () => {
    const off = { a: { ...node, enabled: false }, b: { ...node, disabled: true } };
    expect(read({ mcpServers: off })).toEqual({ problems: [], servers: [] });
  });
});
