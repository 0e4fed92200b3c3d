import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/*
 * Arguments that headers of their call say too, so that who only forwards it can read them (specification 2026-07-28, Streamable HTTP, custom
 * headers): a property with `"x-mcp-header": "Region"` is sent as `Mcp-Param-Region`.
 */

const annotation = 'x-mcp-header';
const prefix = 'Mcp-Param-';
/** RFC 9110, section 5.6.2. */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** `number` is not permitted, but servers of the official SDK want the header all the same. */
const primitives: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean', 'number']);
/** Keywords with schemas of values that are at no fixed place of the arguments: an annotation in there makes the whole tool invalid. */
const elsewhere = [
  'items prefixItems contains additionalProperties unevaluatedProperties unevaluatedItems propertyNames',
  'oneOf anyOf allOf not if then else',
].flatMap((keywords) => keywords.split(' '));
const named = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** A property, and the name that its header has behind `Mcp-Param-`. */
interface ParamHeader {
  readonly path: readonly string[];
  readonly name: string;
  readonly type: unknown;
}

/** Each call asks for them, of the same few objects. */
const known = new WeakMap<JsonObject, readonly ParamHeader[]>();

/** The headers that calls of a tool have; none where its annotations are invalid. */
export function paramHeadersOf(inputSchema: Json | undefined): readonly ParamHeader[] {
  if (!isJsonObject(inputSchema)) return [];
  let headers = known.get(inputSchema);
  if (!headers) {
    const found = new Map<string, ParamHeader>();
    headers = collect(inputSchema, [], found) ? [...found.values()] : [];
    known.set(inputSchema, headers);
  }
  return headers;
}

/** False for an invalid annotation. @param path undefined: at no fixed place. @param found by lower-case names. */
function collect(schema: Json, path: readonly string[] | undefined, found: Map<string, ParamHeader>): boolean {
  if (!isJsonObject(schema)) return true;
  const { [annotation]: name, type, properties } = schema;
  if (name !== undefined) {
    if (!path?.length || typeof name !== 'string' || !token.test(name) || !primitives.has(type)) return false;
    const key = name.toLowerCase();
    if (found.has(key)) return false;
    found.set(key, { path, name, type });
  }
  const within = (child: Json): boolean => collect(child, undefined, found);
  return (
    Object.entries(childrenOf(properties)).every(([key, child]) => collect(child, path && [...path, key], found)) &&
    elsewhere.every((keyword) => branchesOf(schema[keyword]).every(within)) &&
    named.every((keyword) => Object.values(childrenOf(schema[keyword])).every(within))
  );
}

function childrenOf(keyword: Json | undefined): JsonObject {
  return isJsonObject(keyword) ? keyword : {};
}

function branchesOf(keyword: Json | undefined): readonly Json[] {
  return Array.isArray(keyword) ? keyword : [keyword ?? null];
}

/** The headers of a call with these arguments. */
export function headersFor(headers: readonly ParamHeader[], args: JsonObject): Record<string, string> {
  const said = headers.map(({ path, name }) => [`${prefix}${name}`, textOf(valueAt(args, path))] as const);
  return Object.fromEntries(said.flatMap(([name, text]) => (text === undefined ? [] : [[name, encoded(text)]])));
}

/** The header that does not say what its argument does, and what is wrong with it. @param sent by lower-case names. */
export function wrongHeader(
  headers: readonly ParamHeader[],
  args: JsonObject,
  sent: Readonly<Record<string, string | string[] | undefined>>,
): { header: string; problem: string } | undefined {
  for (const { path, name, type } of headers) {
    const value = valueAt(args, path);
    const text = textOf(value);
    if (text === undefined) continue;
    const header = `${prefix}${name}`;
    const given = sent[header.toLowerCase()];
    if (typeof given !== 'string') return { header, problem: 'is missing' };
    const said = decoded(given);
    if (said === undefined) return { header, problem: 'is not in valid Base64' };
    const isNumber = typeof value === 'number' && (type === 'integer' || type === 'number') && decimal.test(said);
    if (isNumber ? Number(said) !== value : said !== text) return { header, problem: 'says something else' };
  }
  return undefined;
}

const decimal = /^-?\d+(\.\d+)?$/;

function valueAt(args: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = args;
  for (const key of path) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/** Undefined for what has no header: what is absent or null, what is no primitive, and a number that a text could not say exactly. */
function textOf(value: Json | undefined): string | undefined {
  if (typeof value === 'string') return value;
  if (typeof value === 'boolean') return String(value);
  if (typeof value !== 'number') return undefined;
  const isExact = Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  return isExact ? String(value) : undefined;
}

const start = '=?base64?';
const end = '?=';
const base64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function isWrapped(text: string): boolean {
  return text.startsWith(start) && text.endsWith(end);
}

/** As it is where a header can carry that (RFC 9110, section 5.5). */
function encoded(text: string): string {
  const isPlain = /^[\t\x20-\x7e]+$/.test(text) && text.trim() === text && !isWrapped(text);
  return isPlain ? text : `${start}${Buffer.from(text).toString('base64')}${end}`;
}

function decoded(header: string): string | undefined {
  if (!isWrapped(header)) return header;
  const inside = header.slice(start.length, -end.length);
  if (!base64.test(inside)) return undefined;
  try {
    return utf8.decode(Buffer.from(inside, 'base64'));
  } catch {
    return undefined;
  }
}
