import { execFileSync } from 'node:child_process';
import { clients, gatewayUrl, snippetFor } from './connect.js';

const url = 'http://127.0.0.1:3000/mcp';
const token = 'rlt_some-token.1';
const text = (client: string, given?: string): string => snippetFor(client, url, given).text;

/** Splits a command into words as a shell does, with RIALTO_TOKEN set. */
function words(command: string): string[] {
  const script = `claude() { printf '%s\\n' "$@"; }; npx() { printf '%s\\n' "$@"; }; ${command}`;
  return execFileSync('sh', ['-c', script], { env: { RIALTO_TOKEN: token }, encoding: 'utf8' })
    .trim()
    .split('\n');
}

describe('connect', () => {
  it('lists the clients', () => {
    expect(clients).toEqual([
      'claude-code',
      'claude-desktop',
      'vscode',
      'cursor',
      'gemini',
      'codex',
      'langgraph',
      'a2a-sdk',
      'inspector',
    ]);
    expect(() => snippetFor('netscape', url)).toThrow(/give one of claude-code/);
  });

  it.each([undefined, token])('prints commands that a shell can run, with token %s', (given) => {
    const header = `Authorization: Bearer ${token}`;
    expect(words(text('claude-code', given))).toEqual(
      ['mcp', 'add', '--transport', 'http', 'rialto', url, '--header', header], // prettier-ignore
    );
    expect(words(text('inspector', given))).toEqual(expect.arrayContaining(['--cli', url, header, 'tools/list']));
  });

  it('(P15) prints the inspector version that takes a URL, and the Node version that it needs', () => {
    const { where, text: command } = snippetFor('inspector', url);
    expect([where, command]).toEqual([
      expect.stringContaining('Node 22.19'),
      expect.stringContaining('@modelcontextprotocol/inspector@2 '),
    ]);
  });

  it.each([undefined, token])('prints JSON files with the URL, with token %s', (given) => {
    const read = (client: string) => JSON.parse(text(client, given)) as Record<string, any>;
    const bearer = (reference: string) => ({ Authorization: `Bearer ${given ?? reference}` });
    expect(read('cursor').mcpServers.rialto).toEqual({ url, headers: bearer('${env:RIALTO_TOKEN}') });
    expect(read('gemini').mcpServers.rialto).toEqual({ httpUrl: url, headers: bearer('$RIALTO_TOKEN') });
    const { inputs, servers } = read('vscode');
    expect(servers.rialto).toEqual({ type: 'http', url, headers: bearer('${input:rialto-token}') });
    expect(inputs?.[0].id).toBe(given === undefined ? 'rialto-token' : undefined);
    const { command, args, env } = read('claude-desktop').mcpServers.rialto;
    expect([command, args[2], env]).toEqual([
      'npx',
      url,
      { AUTHORIZATION: `Bearer ${given ?? 'PASTE-YOUR-TOKEN-HERE'}` },
    ]);
  });

  it('prints a TOML table for codex', () => {
    const read = (given?: string) => {
      const [head, ...pairs] = text('codex', given).split('\n');
      expect(head).toBe('[mcp_servers.rialto]');
      return Object.fromEntries(pairs.map((line) => /^(\w+) = (.+)$/.exec(line)!.slice(1) as [string, string]));
    };
    expect(read()).toEqual({ url: `"${url}"`, bearer_token_env_var: '"RIALTO_TOKEN"' });
    expect(read(token)).toEqual({ url: `"${url}"`, http_headers: `{ "Authorization" = "Bearer ${token}" }` });
  });

  it.each([undefined, token])('prints Python with a literal configuration for langgraph, with token %s', (given) => {
    const literal = /MultiServerMCPClient\((\{[\s\S]*\})\)$/.exec(text('langgraph', given))![1]!;
    const plain = literal.replace('"Bearer " + os.environ["RIALTO_TOKEN"]', `"Bearer ${token}"`);
    const parsed = JSON.parse(plain.replace(/,(\s*\})/g, '$1')) as unknown;
    const headers = { Authorization: `Bearer ${token}` };
    expect(parsed).toEqual({ rialto: { transport: 'streamable_http', url, headers } });
  });

  it.each([undefined, token])('prints a module that runs for the A2A SDK, with token %s', (given) => {
    const module = text('a2a-sdk', given);
    expect(module).toContain('createFromUrl("http://127.0.0.1:3000")');
    expect(module).toContain(given === undefined ? 'process.env.RIALTO_TOKEN' : `"Bearer ${token}"`);
    execFileSync(process.execPath, ['--input-type=module', '--check'], { input: module });
  });

  it('refuses a token that could break out of a snippet', () => {
    expect(() => snippetFor('claude-code', url, '"; rm -rf /')).toThrow(/not a bearer token/);
  });
});

describe('the address of the gateway', () => {
  it.each([
    [{}, 'http://127.0.0.1:3000'],
    [{ PORT: '8080', HOST: '0.0.0.0' }, 'http://127.0.0.1:8080'],
    [{ HOST: '::1' }, 'http://[::1]:3000'],
    [{ RIALTO_PUBLIC_URL: 'https://rialto.example.com/' }, 'https://rialto.example.com'],
  ])('%j gives %s', (env, expected) => expect(gatewayUrl(env)).toBe(expected));

  it('must be given when the gateway takes any free port', () => {
    expect(() => gatewayUrl({ PORT: '0' })).toThrow(/with --url/);
    expect(gatewayUrl({ PORT: '0' }, 'http://127.0.0.1:4711')).toBe('http://127.0.0.1:4711');
  });

  it('must not contain quotes', () => {
    expect(() => gatewayUrl({}, 'http://x/"$(id)')).toThrow(/http or https/);
    expect(() => gatewayUrl({}, 'ftp://x')).toThrow(/http or https/);
  });
});
