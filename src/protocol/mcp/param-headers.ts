import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';

/*
 * Arguments that a call repeats in headers, so that systems that only forward the call can read them (specification
 * 2026-07-28, Streamable HTTP, custom headers): a property with `"x-mcp-header": "Region"` is sent as
 * `Mcp-Param-Region`.
 */

const annotation = 'x-mcp-header';
const prefix = 'Mcp-Param-';
/** The characters of a header name (RFC 9110, section 5.6.2). */
const token = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/;
/** The specification does not permit `number`, but servers of the official SDK require the header for it too. */
const primitives: ReadonlySet<unknown> = new Set(['string', 'integer', 'boolean', 'number']);
/**
 * Keywords with schemas for values that have no fixed place in the arguments: an annotation in them makes the whole
 * tool invalid.
 */
const elsewhere = [
  'items prefixItems contains additionalProperties unevaluatedProperties unevaluatedItems propertyNames',
  'oneOf anyOf allOf not if then else',
].flatMap((keywords) => keywords.split(' '));
const named = ['patternProperties', 'dependentSchemas', '$defs', 'definitions'];

/** A property, and the part of its header name after `Mcp-Param-`. */
interface ParamHeader {
  readonly path: readonly string[];
  readonly name: string;
  readonly type: unknown;
}

/** A cache, because each call needs the headers of one of few schemas. */
const known = new WeakMap<JsonObject, readonly ParamHeader[]>();

/** Returns the headers that calls of a tool must have; empty when its annotations are invalid. */
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

/**
 * Collects the annotated properties of a schema. Returns false for an invalid annotation.
 *
 * @param path undefined when the values of the schema have no fixed place in the arguments.
 * @param found by lower-case names.
 */
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

/** Returns the headers of a call with these arguments. */
export function headersFor(headers: readonly ParamHeader[], args: JsonObject): Record<string, string> {
  const sent = headers.map(({ path, name }) => [`${prefix}${name}`, textOf(valueAt(args, path))] as const);
  return Object.fromEntries(sent.flatMap(([name, text]) => (text === undefined ? [] : [[name, encoded(text)]])));
}

/**
 * Finds the first header that does not match its argument, and the problem.
 *
 * @param sent the headers of the request, by lower-case names.
 */
export function wrongHeader(
  headers: readonly ParamHeader[],
  args: JsonObject,
  sent: Readonly<Record<string, string | string[] | undefined>>,
): { header: string; problem: string } | undefined {
  for (const { path, name, type } of headers) {
    const value = valueAt(args, path);
    const expected = textOf(value);
    if (expected === undefined) continue;
    const header = `${prefix}${name}`;
    const given = sent[header.toLowerCase()];
    if (typeof given !== 'string') return { header, problem: 'is missing' };
    const text = decoded(given);
    if (text === undefined) return { header, problem: 'is not valid Base64' };
    const isNumber = typeof value === 'number' && (type === 'integer' || type === 'number') && decimal.test(text);
    if (isNumber ? Number(text) !== value : text !== expected) return { header, problem: 'differs from the argument' };
  }
  return undefined;
}

const decimal = /^-?\d+(\.\d+)?$/;

function valueAt(args: JsonObject, path: readonly string[]): Json | undefined {
  let value: Json | undefined = args;
  for (const key of path) value = isJsonObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;
  return value;
}

/**
 * Returns the text of an argument for its header; undefined for arguments without a header: absent or null ones, values
 * that are not primitive, and numbers that a text cannot hold exactly.
 */
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

/** Encodes a text in Base64 when a header cannot carry it as it is (RFC 9110, section 5.5). */
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
