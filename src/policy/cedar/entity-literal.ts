import type { TypeAndId } from '@cedar-policy/cedar-wasm/nodejs';
import type { Violation } from '../../kernel/errors.js';
import { actions } from '../../kernel/verbs.js';
import { entityTypes } from './cedar-schema.js';

export type Parsed<Value> =
  { readonly ok: true; readonly value: Value } | { readonly ok: false; readonly violations: readonly Violation[] };

const shape = /^\s*([A-Za-z_]\w*(?:::[A-Za-z_]\w*)*)\s*::\s*"((?:[^"\\]|\\.)*)"\s*$/su;
const escape = /\\(?:u\{([0-9a-fA-F]{1,6})\}|x([0-7][0-9a-fA-F])|([nrt0\\'"*]))/y;
const simple: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', '0': '\0' };
const known: ReadonlySet<string> = new Set([...entityTypes, 'Action']);

/** Parses an entity in Cedar syntax, e.g. `Skill::"vercel_ops.deploy"`, for `POST /api/policies/test`. */
export function parseEntityLiteral(text: string, field = 'entity'): Parsed<TypeAndId> {
  const match = shape.exec(text);
  if (!match) return refusedLiteral(field, 'expected an entity like User::"bob"');
  const [, type = '', quoted = ''] = match;
  if (!known.has(type)) return refusedLiteral(field, `unknown entity type ${type}; known: ${[...known].join(', ')}`);
  const id = unescape(quoted);
  if (id === undefined) return refusedLiteral(field, 'the id contains an escape sequence that Cedar does not know');
  if (!id.isWellFormed()) return refusedLiteral(field, 'the id is not well-formed Unicode');
  if (type === 'Action' && !Object.hasOwn(actions, id)) {
    return refusedLiteral(field, `unknown action "${id}"; known: ${Object.keys(actions).join(', ')}`);
  }
  return { ok: true, value: { type, id } };
}

/**
 * Writes a text as a Cedar string literal. No character can end the literal, stay invisible or look like another one.
 */
export function cedarString(text: string): string {
  const escaped = text.replace(/["\\]|[^\P{C}]|[\u2028\u2029]/gu, (char) =>
    char === '"' || char === '\\' ? `\\${char}` : `\\u{${char.codePointAt(0)!.toString(16)}}`,
  );
  return `"${escaped}"`;
}

function unescape(quoted: string): string | undefined {
  let text = '';
  for (let index = 0; index < quoted.length;) {
    if (quoted[index] !== '\\') {
      text += quoted[index++];
      continue;
    }
    escape.lastIndex = index;
    const match = escape.exec(quoted);
    const code = match ? parseInt(match[1] ?? match[2] ?? '0', 16) : Infinity;
    if (!match || code > 0x10ffff || match[3] === '*') return undefined;
    text += match[3] === undefined ? String.fromCodePoint(code) : (simple[match[3]] ?? match[3]);
    index = escape.lastIndex;
  }
  return text;
}

function refusedLiteral(field: string, description: string): Parsed<never> {
  return { ok: false, violations: [{ field, description }] };
}
