import { trimEnd } from '../kernel/text.js';
import { readEnvironment } from '../platform/config/env.schema.js';
import { SettingsError } from '../platform/config/settings.js';
import { CommandError, note, print, type Env } from './io.js';

export interface ConnectOptions {
  readonly url?: string;
  readonly token?: string;
}

/** The address of the MCP door, and a token unless the client reads `RIALTO_TOKEN` itself. */
interface Target {
  readonly url: string;
  readonly token?: string;
}

interface Recipe {
  /** Place where a person puts the snippet. */
  readonly where: string;
  readonly snippet: (target: Target) => string;
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);
const bearer = (token: string): string => `Bearer ${token}`;

const recipes: Record<string, Recipe> = {
  'claude-code': {
    where: 'run it in a shell, with Node 22.19 or newer',
    snippet: ({ url, token }) =>
      `claude mcp add --transport http rialto ${url} --header "Authorization: ${bearer(token ?? '$RIALTO_TOKEN')}"`,
  },
  'claude-desktop': {
    where: 'claude_desktop_config.json',
    snippet: ({ url, token }) =>
      json({
        mcpServers: {
          rialto: {
            command: 'npx',
            args: [
              '-y',
              'mcp-remote',
              url,
              '--header',
              'Authorization:${AUTHORIZATION}',
              ...(url.startsWith('http:') ? ['--allow-http'] : []),
            ],
            env: { AUTHORIZATION: bearer(token ?? 'PASTE-YOUR-TOKEN-HERE') },
          },
        },
      }),
  },
  vscode: {
    where: '.vscode/mcp.json',
    snippet: ({ url, token }) =>
      json({
        ...(token === undefined && {
          inputs: [{ type: 'promptString', id: 'rialto-token', description: 'Token for Rialto', password: true }],
        }),
        servers: {
          rialto: { type: 'http', url, headers: { Authorization: bearer(token ?? '${input:rialto-token}') } },
        },
      }),
  },
  cursor: {
    where: '.cursor/mcp.json',
    snippet: ({ url, token }) =>
      json({ mcpServers: { rialto: { url, headers: { Authorization: bearer(token ?? '${env:RIALTO_TOKEN}') } } } }),
  },
  gemini: {
    where: '~/.gemini/settings.json',
    snippet: ({ url, token }) =>
      json({
        mcpServers: { rialto: { httpUrl: url, headers: { Authorization: bearer(token ?? '$RIALTO_TOKEN') } } },
      }),
  },
  codex: {
    where: '~/.codex/config.toml',
    snippet: ({ url, token }) =>
      [
        '[mcp_servers.rialto]',
        `url = ${JSON.stringify(url)}`,
        token === undefined
          ? 'bearer_token_env_var = "RIALTO_TOKEN"'
          : `http_headers = { "Authorization" = ${JSON.stringify(bearer(token))} }`,
      ].join('\n'),
  },
  langgraph: {
    where: 'Python, with the package langchain-mcp-adapters',
    snippet: ({ url, token }) =>
      [
        ...(token === undefined ? ['import os', ''] : []),
        'from langchain_mcp_adapters.client import MultiServerMCPClient',
        '',
        'client = MultiServerMCPClient({',
        '    "rialto": {',
        '        "transport": "streamable_http",',
        `        "url": ${JSON.stringify(url)},`,
        token === undefined
          ? '        "headers": {"Authorization": "Bearer " + os.environ["RIALTO_TOKEN"]},'
          : `        "headers": {"Authorization": ${JSON.stringify(bearer(token))}},`,
        '    }',
        '})',
      ].join('\n'),
  },
  'a2a-sdk': {
    where: 'an ES module, with the package @a2a-js/sdk: the default agent, or the one that Rialto finds best',
    snippet: ({ url, token }) =>
      [
        "import { ClientFactory, JsonRpcTransportFactory } from '@a2a-js/sdk/client';",
        '',
        'const fetchImpl = (input, init = {}) => {',
        '  const headers = new Headers(init.headers);',
        token === undefined
          ? "  headers.set('authorization', `Bearer ${process.env.RIALTO_TOKEN}`);"
          : `  headers.set('authorization', ${JSON.stringify(bearer(token))});`,
        '  return fetch(input, { ...init, headers });',
        '};',
        'const factory = new ClientFactory({ transports: [new JsonRpcTransportFactory({ fetchImpl })] });',
        `const client = await factory.createFromUrl(${JSON.stringify(url.replace(/\/mcp$/, ''))});`,
      ].join('\n'),
  },
  inspector: {
    where: 'run it in a shell, with Node 22.19 or newer',
    snippet: ({ url, token }) =>
      `npx @modelcontextprotocol/inspector@2 --cli ${url} --transport http ` +
      `--header "Authorization: ${bearer(token ?? '$RIALTO_TOKEN')}" --method tools/list`,
  },
};

/** Names of the clients that `connect` supports. */
export const clients: readonly string[] = Object.keys(recipes);

/** Prints the snippet to paste into a client; prints the place for it on standard error. */
export function connect(env: Env, client: string, { url, token }: ConnectOptions): void {
  const { where, text } = snippetFor(client, `${gatewayUrl(env, url)}/mcp`, token);
  note(where);
  print(text);
}

/**
 * Returns the snippet for a client, and the place for it. Throws CommandError for an unknown client or a malformed
 * token.
 */
export function snippetFor(client: string, url: string, token?: string): { where: string; text: string } {
  const recipe = recipes[client];
  if (!recipe) throw new CommandError(`${client} is not a known client; give one of ${clients.join(', ')}`);
  if (token !== undefined && !/^[\w.~+/=-]+$/.test(token)) throw new CommandError('--token is not a bearer token');
  return { where: recipe.where, text: recipe.snippet({ url, token }) };
}

/**
 * Returns the address of the gateway without a trailing slash: the given one, its public one, or that of a local
 * gateway.
 */
export function gatewayUrl(env: Env, given?: string): string {
  const { values, problems } = readEnvironment(env);
  if (problems.length > 0) throw new SettingsError(problems);
  const { HOST: host, PORT, RIALTO_PUBLIC_URL } = values;
  if (given === undefined && RIALTO_PUBLIC_URL === undefined && PORT === 0)
    throw new CommandError('PORT is 0, so the gateway takes a free one: give its address with --url');
  const local = host === undefined || host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
  const url = given ?? RIALTO_PUBLIC_URL ?? `http://${local.includes(':') ? `[${local}]` : local}:${PORT}`;
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol) || /[\s"'`$\\]/.test(url))
    throw new CommandError(`--url ${url}: give an http or https address`);
  return trimEnd(url, '/');
}
