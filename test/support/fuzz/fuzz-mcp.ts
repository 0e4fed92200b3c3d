import { hostileTexts, hostileValues } from './fuzz-json.js';
import type { Random } from './random.js';

const methods = [
  'initialize',
  'ping',
  'tools/list',
  'tools/call',
  'tools/call',
  'tools/call',
  'server/discover',
  'subscriptions/listen',
  'resources/list',
  'prompts/get',
  'logging/setLevel',
  'completion/complete',
  'notifications/initialized',
  'notifications/cancelled',
  'tasks/get',
  '__proto__',
  'toString',
  'constructor',
  '',
  'm'.repeat(10_000),
] as const;

/** Generates an MCP body that calls no tool, with unusual methods, ids, params and batches. */
export function mcpBody(random: Random, tool: string): Buffer {
  const one = (): string => message(random, tool);
  if (random.chance(0.8)) return Buffer.from(one());
  const length = random.pick([0, 1, 2, 20, 21, 10_000]);
  const ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}';
  const messages = Array.from({ length }, (_, index) => (index < 3 ? one() : ping));
  return Buffer.from(`[${messages.join(',')}]`);
}

function message(random: Random, tool: string): string {
  const method = random.chance(0.9) ? random.pick(methods) : random.pick(hostileValues);
  const members: [string, string][] = [
    ['jsonrpc', random.chance(0.93) ? '"2.0"' : JSON.stringify(random.pick(['1.0', 2, null, '2.0 ']))],
    ['method', JSON.stringify(method) ?? 'null'],
  ];
  if (random.chance(0.9)) members.push(['id', idOf(random)]);
  if (random.chance(0.85)) members.push(['params', paramsOf(random, tool)]);
  if (random.chance(0.1))
    members.push(
      random.pick([
        ['result', '{}'],
        ['error', 'null'],
        ['id', '7'],
        ['__proto__', '{"polluted":true}'],
      ]),
    );
  return `{${members.map(([name, text]) => `"${name}":${text}`).join(',')}}`;
}

function idOf(random: Random): string {
  if (random.chance(0.7)) return String(random.whole(1_000));
  return random.pick([
    'null',
    '{}',
    '[]',
    'true',
    '1e400',
    '1e308',
    '-0',
    '1.5',
    '9007199254740993',
    '""',
    `"${'i'.repeat(2_000)}"`,
    '"\\u0000"',
    '"\\ud800"',
  ]);
}

function paramsOf(random: Random, tool: string): string {
  const value = JSON.stringify(random.pick(hostileValues)) ?? 'null';
  const text = JSON.stringify(random.pick(hostileTexts));
  return random.pick([
    () => value,
    () => '{}',
    () => `{"name":${value},"arguments":${value}}`,
    () => `{"name":${text},"arguments":{"a":${value}}}`,
    () => `{"name":"nobody.${random.pick(['deploy', '__proto__', '\\u0000', '\\ud800', '*'])}","arguments":{}}`,
    () => {
      const needs = random.pick(['null', '[]', '"x"', '{}', '{"need":7}', `{"need":null,${text}:1}`]);
      return `{"name":${JSON.stringify(tool)},"arguments":${needs}}`;
    },
    () => `{"name":${JSON.stringify(`${tool} `)},"arguments":{"need":"x"}}`,
    () => `{"protocolVersion":${value},"capabilities":${value},"clientInfo":{"name":${text},"version":${value}}}`,
    () => `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":${value}}`,
    () => `{"cursor":${value}}`,
    () => `{"requestId":${value},"reason":${text}}`,
    () => `{"_meta":{"progressToken":${value},"io.modelcontextprotocol/protocolVersion":${text}},"name":${text}}`,
    () => modern(text),
    () => `{"a":${'['.repeat(random.pick([60, 70, 100_000]))}`,
  ])();
}

function modern(text: string): string {
  const meta =
    '"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",' +
    '"io.modelcontextprotocol/clientInfo":{"name":"fuzz","version":"1"},' +
    '"io.modelcontextprotocol/clientCapabilities":{}}';
  return `{"name":${text},"arguments":{},${meta}}`;
}

/** Generates headers of both eras, correct and incorrect. */
export function mcpHeaders(random: Random, session: string): [string, string][] {
  const headers: [string, string][] = [
    [
      'Accept',
      random.pick(['application/json, text/event-stream', 'application/json', 'text/event-stream', '*/*', 'text/html']),
    ],
  ];
  if (random.chance(0.3))
    headers.push([
      'MCP-Protocol-Version',
      random.pick(['2026-07-28', '2026-07-28', '2025-11-25', '2024-11-05', '1999-01-01', '__proto__', '']),
    ]);
  if (random.chance(0.2))
    headers.push(['Mcp-Method', random.pick(['tools/call', 'tools/list', '=?base64?//8=?=', 'x'.repeat(500)])]);
  if (random.chance(0.1)) headers.push(['Mcp-Name', random.pick(['nobody', '=?base64?AA==?=', '%00'])]);
  if (random.chance(0.3))
    headers.push([
      'Mcp-Session-Id',
      random.pick([session, 'none', '__proto__', '01890000-0000-7000-8000-000000000000', "' or 1=1 --"]),
    ]);
  if (random.chance(0.05)) headers.push(['Last-Event-ID', random.pick(['1', '-1', 'x', '9'.repeat(400)])]);
  return headers;
}
