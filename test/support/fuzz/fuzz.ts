import {
  disturb,
  hostileTexts,
  hostileValues,
  hugePoisons,
  poisons,
  sample,
  scramble,
  type Schema,
} from './fuzz-json.js';
import { frame, type Draft } from './fuzz-frame.js';
import { mcpBody, mcpHeaders } from './fuzz-mcp.js';
import { Random } from './random.js';

/** One operation of the API description. */
export interface Operation {
  readonly path: string;
  readonly method: string;
  readonly query: readonly { name: string; schema: Schema }[];
  readonly body?: Schema;
}

/** The facts about the attacked gateway that requests use. */
export interface Ground {
  readonly operations: readonly Operation[];
  readonly tokens: readonly string[];
  /** Values of path parameters that exist. */
  readonly known: readonly string[];
  /** Open MCP sessions. A shot may end one. */
  readonly sessions: readonly string[];
  readonly tool: string;
}

/** One request, as bytes. It is never valid when it would change something. */
export interface Shot {
  readonly method: string;
  readonly path: string;
  readonly bytes: Buffer;
  /** True when the bytes are not a correct HTTP request, so the server need not answer. */
  readonly lies: boolean;
}

const reads = new Set(['GET', 'HEAD', 'OPTIONS']);
const methods = ['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'PATCH', 'DELETE', 'TRACE', 'PROPFIND', 'SEARCH'] as const;
/** Operations that change nothing, with any body. */
const harmless = new Set(['/api/policies/test']);
const contentTypes = [
  'text/plain',
  'application/x-www-form-urlencoded',
  'multipart/form-data; boundary=x',
  'application/json; charset=utf-16',
  'application/json; charset=latin1',
  'application/jsonp',
  'application/vnd.fuzz+json',
  'application/json, text/plain',
  'APPLICATION/JSON',
  '/',
  '',
] as const;
const otherPaths = [
  '/',
  '/.well-known/agent-card.json',
  '/.well-known/agent-card.json?org=default',
  '/.well-known/agent.json',
  '/.well-known/jwks.json',
  '/a2a',
  '/a2a/agents',
  '/a2a/agents/stub/.well-known/agent-card.json',
  '/a2a/stub@default/agent.json',
  '/a2a/agents/stub/message:send',
  '/_agent-native/a2a',
  '/a2e',
  '/admin/queues',
  '/admin/queues/api/queues',
  '/admin/queues/api/queues?activeQueue=card-refresh&page=1e9&status=%00',
  '/admin/queues/api/queues/nope/1/logs',
  '/admin/queues/static/../../../../package.json',
  '/docs',
  '/docs-json',
  '/docs-yaml',
  '/docs/..%2f..%2fpackage.json',
  '/console',
  '/metrics',
  '/livez',
  '/readyz',
  '/version',
  '/favicon.ico',
  '/nowhere',
] as const;

/** Returns the operations of an OpenAPI document. */
export function operationsOf(document: { paths: Record<string, Record<string, any>> }): Operation[] {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, { parameters = [], requestBody }]) => ({
      path,
      method: method.toUpperCase(),
      query: (parameters as { in: string; name: string; schema: Schema }[]).filter((each) => each.in === 'query'),
      body: requestBody?.content?.['application/json']?.schema as Schema | undefined,
    })),
  );
}

/** Returns the shot with this number. The same seed gives the same bytes, so that a finding can be repeated alone. */
export function shotOf(seed: number, ground: Ground): Shot {
  const random = new Random(Math.imul(seed + 1, 0x9e3779b1));
  const draft = random.pick([api, api, api, mcp, mcp, other])(random, ground);
  authenticate(draft, random, ground);
  dirty(draft, random);
  const { bytes, lies } = frame(draft, random);
  return { method: draft.method, path: draft.path, bytes, lies };
}

function api(random: Random, ground: Ground): Draft {
  const operation = random.pick(ground.operations);
  const method = random.chance(0.9) ? operation.method : random.pick(methods);
  const body = operation.body && !reads.has(method) ? bodyFor(operation, operation.body, random) : undefined;
  const mayBeReal = reads.has(method) || (method === operation.method && body !== undefined && body.length > 0);
  const path = operation.path.replaceAll(/\{\w+\}/g, () =>
    mayBeReal && random.chance(0.5) ? random.pick(ground.known) : segment(random),
  );
  const query = random.chance(0.5) ? queryOf(operation, random) : '';
  const headers: Draft['headers'] = body ? [['Content-Type', contentType(random)]] : [];
  return {
    method,
    path: trick(path, random) + query,
    headers,
    body: body ?? (random.chance(0.1) ? poison(random) : undefined),
  };
}

function mcp(random: Random, { sessions, tool }: Ground): Draft {
  const session = random.pick(sessions);
  const method = random.chance(0.85) ? 'POST' : random.pick(methods);
  const path = random.pick(['/mcp', '/mcp', '/mcp', '/mcp/', `/api/mcp/${session}`, `/api/mcp/${segment(random)}`]);
  const query = random.pick([
    '',
    '',
    '',
    '?names=both',
    '?names=__proto__',
    `?agents=${encoded(random)}`,
    '?names=canonical&names=both',
  ]);
  const body = reads.has(method) ? undefined : random.chance(0.25) ? poison(random) : mcpBody(random, tool);
  const headers = [['Content-Type', contentType(random)], ...mcpHeaders(random, session)] as Draft['headers'];
  return {
    method,
    path: trick(path, random) + query,
    headers,
    body: body && (random.chance(0.15) ? scramble(body, random) : body),
  };
}

function other(random: Random): Draft {
  const method = random.chance(0.7) ? 'GET' : random.pick(methods);
  const path = random.chance(0.7) ? random.pick(otherPaths) : `/${segment(random)}/${segment(random)}`;
  const body = reads.has(method) ? undefined : poison(random);
  return { method, path: trick(path, random), headers: body ? [['Content-Type', contentType(random)]] : [], body };
}

function bodyFor({ path }: Operation, schema: Schema, random: Random): Buffer {
  if (harmless.has(path) && random.chance(0.7))
    return Buffer.from(JSON.stringify(disturb(sample(schema, random), random)));
  return (random.chance(0.2) ? unstorable(schema, random) : undefined) ?? invalidBody(schema, random);
}

/**
 * Returns a body that fits the schema except for one text that the database cannot store; undefined when the schema has
 * no text.
 */
function unstorable(schema: Schema, random: Random): Buffer | undefined {
  const places = Object.entries(schema.properties ?? {}).filter(
    ([, { type, enum: words }]) => type === 'string' && !words,
  );
  if (places.length === 0) return undefined;
  const texts = ['a\u0000b', '\ud800', 'x\udfff'];
  const value = { ...(sample(schema, random) as object), [random.pick(places)[0]]: random.pick(texts) };
  return Buffer.from(JSON.stringify(value));
}

/**
 * Returns a body that does not fit the schema. It has at least one unknown member, and every schema of the API is
 * closed.
 */
function invalidBody(schema: Schema, random: Random): Buffer {
  if (random.chance(0.3)) return poison(random);
  const valid = sample(schema, random);
  const value = random.chance(0.6) ? disturb(valid, random) : valid;
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return Buffer.from(JSON.stringify(value ?? null));
  const name = random.pick(['fuzz', 'orgId', 'ownerId', 'constructor', 'createdAt']);
  const member = `${JSON.stringify(name)}:${JSON.stringify(random.pick(hostileValues))}`;
  const text = JSON.stringify(value);
  const closed = text === '{}' ? `{"fuzz":0,${member}}` : `${text.slice(0, -1)},"fuzz":0,${member}}`;
  return random.chance(0.15) ? scramble(Buffer.from(closed), random) : Buffer.from(closed);
}

function poison(random: Random): Buffer {
  return random.chance(0.015) ? random.pick(hugePoisons)() : random.pick(poisons)();
}

function contentType(random: Random): string {
  return random.chance(0.85) ? 'application/json' : random.pick(contentTypes);
}

function encoded(random: Random): string {
  return encodeURIComponent(random.pick(hostileTexts).toWellFormed());
}

/** Returns a path segment that names nothing: escapes, traversals, unknown ids. */
function segment(random: Random): string {
  return random.pick([
    () => encoded(random) || '%20',
    () =>
      random.pick([
        '%',
        '%zz',
        '%ff',
        '%c0%ae%c0%ae',
        '%2e%2e%2f%2e%2e%2f',
        '..',
        '%00',
        '%0d%0aX: 1',
        '%ed%a0%80',
        '%25%30%30',
      ]),
    () => '01890000-0000-7000-8000-000000000000',
    () => 'nobody',
    () => 'a'.repeat(1 + random.whole(3_000)),
    () => `${random.whole(1e9)};x=1`,
    () => '\u00e9\u00ff',
  ])();
}

function queryOf({ query }: Operation, random: Random): string {
  const pairs = Array.from({ length: 1 + random.whole(3) }, () => {
    const parameter = query.length > 0 && random.chance(0.8) ? random.pick(query) : undefined;
    const name = parameter?.name ?? encoded(random);
    const value = parameter && random.chance(0.2) ? String(sample(parameter.schema, random)) : encoded(random);
    return random.pick([
      `${name}=${value}`,
      `${name}[]=${value}`,
      `${name}[__proto__][polluted]=${value}`,
      `${name}`,
      `${name}=%`,
      `${name}=${value}`,
    ]);
  });
  return `?${pairs.join('&')}`;
}

function trick(path: string, random: Random): string {
  if (random.chance(0.85)) return path;
  return random.pick([
    () => `/${path}`,
    () => path.toUpperCase(),
    () => `${path}/`,
    () => `${path}/.`,
    () => `${path}//..//`,
    () => path.replace('/', '/%2e/'),
    () => path.replace(/[a-z]/, (letter) => `%${letter.charCodeAt(0).toString(16)}`),
    () => `http://evil.example${path}`,
    () => path.replaceAll('/', '\\'),
    () => `${path}#x`,
    () => `${path}${'/a'.repeat(5_000)}`,
    () => '*',
  ])();
}

function authenticate(draft: Draft, random: Random, { tokens }: Ground): void {
  const token = random.chance(0.85) ? tokens[0]! : random.pick(tokens);
  if (random.chance(0.85)) return void draft.headers.push(['Authorization', `Bearer ${token}`]);
  const values = [
    'Bearer',
    'Bearer a b',
    `Basic ${Buffer.from('admin:admin').toString('base64')}`,
    `bearer\t${token}x`,
    `Bearer ${' '.repeat(9_000)}`,
    `Bearer ${'x'.repeat(9_000)}`,
    'Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIn0.',
    `Bearer ${token}=`,
  ];
  if (random.chance(0.7)) draft.headers.push(['Authorization', random.pick(values)]);
  if (random.chance(0.2)) draft.headers.push(['Authorization', `Bearer ${token}`]);
}

/** Adds unexpected headers. */
function dirty({ headers }: Draft, random: Random): void {
  if (random.chance(0.75)) return;
  headers.push(
    ...random.pick<() => Draft['headers']>([
      () => [['X-HTTP-Method-Override', 'DELETE']],
      () => [['X-Forwarded-For', hostileTexts.join('').replaceAll(/[^\x20-\x7e]/g, '')]],
      () => [['X-Request-Id', `${'r'.repeat(200)}<script>`]],
      () => [
        ['Accept', '*/*;q=NaN, a/b/c'],
        ['Accept-Encoding', 'gzip, br, \x7f'.replace('\x7f', '')],
      ],
      () => [['Content-Encoding', random.pick(['gzip', 'identity', 'br, gzip'])]],
      () => [['Expect', random.pick(['100-continue', 'a miracle'])]],
      () => [
        ['Upgrade', 'websocket'],
        ['Connection', 'Upgrade'],
        ['Sec-WebSocket-Key', 'x'],
      ],
      () => [
        ['Upgrade', 'h2c'],
        ['HTTP2-Settings', 'AAMAAABkAARAAAAAAAIAAAAA'],
      ],
      () => [
        ['Range', 'bytes=0-,5-1'],
        ['If-None-Match', '*'],
        ['If-Modified-Since', 'never'],
      ],
      () => [
        ['Cookie', '__proto__=1; a='],
        ['Origin', 'http://evil.example'],
        ['Host', 'evil.example'],
      ],
      () => [
        ['traceparent', '00-zz'],
        ['tracestate', '='.repeat(600)],
        ['A2A-Version', '9.9'],
        ['x-rialto-depth', '1e9'],
      ],
      () => Array.from({ length: 300 }, (_, index) => [`X-Flood-${index}`, 'a']),
      () => [['X-Long', 'a'.repeat(20_000)]],
      () => [['X-Latin', '\u00e9\u00ff']],
    ])(),
  );
}
