import {
  policyToJson,
  validate,
  type DetailedError,
  type PolicyJson,
  type PolicyToJsonAnswer,
  type ValidationAnswer,
} from '@cedar-policy/cedar-wasm/nodejs';
import type { Violation } from '../../kernel/errors.js';
import { askProblem } from './ask-annotation.js';
import { reservedPrefix } from './builtin.js';
import { cedarError, guarded } from './cedar-guard.js';
import { cedarSchema } from './cedar-schema.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import { maxWords, positionAt, scanPolicies, type Statement, type Weight } from './policy-source.js';

/** A problem of a policy text, its position (line and column from 1) and a hint for the correction. */
export interface PolicyViolation extends Violation {
  readonly line?: number;
  readonly column?: number;
  readonly hint?: string;
}

/** One policy that Cedar can parse. */
export interface ParsedPolicy extends Statement {
  readonly json: PolicyJson;
}

/** The parsed content of a text. */
export interface ParsedText {
  readonly policies: readonly ParsedPolicy[];
  readonly violations: readonly PolicyViolation[];
  readonly weight: Weight;
}

export const nothing: ParsedText = { policies: [], violations: [], weight: { bytes: 0, words: 0, patterns: 0 } };

/** Maximum depth of an expression. Cedar's evaluator was seen to trap at 290 (calls) and 360 (anything else). */
const maxDepth = 80;

/**
 * Returns everything that prevents a policy from being stored (abuse 14, RE-76): limits, parse errors, errors of
 * strict validation, and policies that can never apply. Empty when it can be stored.
 */
export function validatePolicyText(name: string, text: string): PolicyViolation[] {
  return atOnce(validatingPolicyText(name, text));
}

/** Does the same in pieces. */
export function* validatingPolicyText(name: string, text: string): Generator<void, PolicyViolation[]> {
  const badName = nameProblem(name);
  const { policies, weight, violations: unparsed } = parsePolicies(text);
  const violations: PolicyViolation[] = [...(badName ? [{ field: 'name', description: badName }] : []), ...unparsed];
  if (unparsed.length > 0) return violations;
  if (weight.words > maxWords)
    return [...violations, at(text, 0, `more than ${maxWords} words`, 'split it into several texts, or use a group')];
  if (policies.length === 0) return [...violations, { field: 'text', description: 'the text contains no policy' }];
  yield;
  const errors = judge(new Map(policies.map((policy, index) => [String(index), policy])));
  for (const [index, { start, text: source, json }] of policies.entries()) {
    const reserved = json.annotations?.id?.startsWith(reservedPrefix);
    if (reserved) violations.push(at(text, start, `@id may not begin with "${reservedPrefix}"`));
    const badAsk = askProblem(json);
    if (badAsk !== undefined) violations.push(at(text, start, badAsk));
    for (const error of errors.get(String(index)) ?? []) violations.push(locate(text, start, source, error));
  }
  return violations;
}

function nameProblem(name: string): string | undefined {
  if (name.trim() === '') return 'a policy needs a name';
  return name.startsWith(reservedPrefix)
    ? `names that begin with "${reservedPrefix}" are reserved for built-in policies`
    : undefined;
}

/** Parses a text into its policies, within the limits. The violations say why it cannot be parsed. */
export function parsePolicies(text: string): ParsedText {
  const scan = scanPolicies(text);
  if ('problem' in scan) {
    return { ...nothing, violations: [at(text, scan.problem.at, scan.problem.message, scan.problem.hint)] };
  }
  const policies: ParsedPolicy[] = [];
  const violations: PolicyViolation[] = [];
  for (const statement of scan.statements) {
    const answer = guarded<PolicyToJsonAnswer>(() => policyToJson(statement.text), unchecked);
    if (answer.type === 'failure') {
      violations.push(...answer.errors.map((error) => locate(text, statement.start, statement.text, error)));
    } else if (depthOf(answer.json) > maxDepth) {
      violations.push(
        at(text, statement.start, `an expression is deeper than ${maxDepth}`, 'use a list and `in` or `contains`'),
      );
    } else policies.push({ ...statement, json: answer.json });
  }
  return { policies, violations, weight: scan.weight };
}

/**
 * Runs strict validation against the schema. Returns the errors by policy id and, on request, the serious warnings.
 */
export function judge(policies: ReadonlyMap<string, Statement>, warnings = true): Map<string, DetailedError[]> {
  const staticPolicies = Object.fromEntries([...policies].map(([id, { text }]) => [id, text]));
  const answer = guarded<ValidationAnswer>(
    () => validate({ schema: cedarSchema, validationSettings: { mode: 'strict' }, policies: { staticPolicies } }),
    unchecked,
  );
  const found = new Map<string, DetailedError[]>();
  if (answer.type === 'failure') return new Map([...policies.keys()].map((id) => [id, answer.errors]));
  const serious = warnings ? answer.validationWarnings.filter(({ error }) => matters(error)) : [];
  for (const { policyId, error } of [...answer.validationErrors, ...serious]) {
    const errors = found.get(policyId) ?? [];
    // One attribute that is missing for each of fifteen actions is reported once.
    if (!errors.some((known) => sameSpot(known, error))) found.set(policyId, [...errors, error]);
  }
  return found;
}

/** Returns the answer for a call into Cedar that failed. */
function unchecked(why: string): { type: 'failure'; errors: DetailedError[]; warnings: DetailedError[] } {
  return { type: 'failure', errors: [cedarError(`could not be checked: ${why}`)], warnings: [] };
}

/**
 * Returns whether a warning is serious. A name in two scripts can be intended; a policy that can never apply, or text
 * that reads backwards, is a mistake.
 */
function matters({ message }: DetailedError): boolean {
  return !/mixed scripts|General Security Profile/.test(message);
}

function sameSpot(left: DetailedError, right: DetailedError): boolean {
  const [a, b] = [left.sourceLocations?.[0], right.sourceLocations?.[0]];
  return a === undefined || b === undefined ? left.message === right.message : a.start === b.start && a.end === b.end;
}

/** Returns the text of a Cedar error without Cedar's policy ids, which only this code knows. */
export function messageOf(error: DetailedError): string {
  const labels = (error.sourceLocations ?? []).map(({ label }) => label).filter((label) => label !== null);
  return [
    error.message
      .replace(/^for policy `[^`]*`, /, '')
      .replace(/ for Action::"[^"]*"/, '')
      .replace(/^failed to parse \w+( with id `[^`]*`)?( from string)?: /, ''),
    ...labels,
  ].join(', ');
}

function locate(text: string, start: number, source: string, error: DetailedError): PolicyViolation {
  const bytes = error.sourceLocations?.[0]?.start ?? 0;
  const offset = Buffer.from(source).subarray(0, bytes).toString().length;
  const description = messageOf(error);
  return at(text, start + offset, description, error.help ?? argumentHint(description));
}

/** Returns how to read an argument, for a policy that reads it as an attribute; undefined for other errors. */
function argumentHint(description: string): string | undefined {
  const [, name] = /^attribute `(.+)` on entity type `Input` not found/.exec(description) ?? [];
  if (name === undefined) return undefined;
  const tag = JSON.stringify(name);
  return `arguments are tags: context.input.hasTag(${tag}) && context.input.getTag(${tag}) == "…"`;
}

function at(text: string, offset: number, description: string, hint?: string): PolicyViolation {
  return { field: 'text', description, ...positionAt(text, offset), ...(hint !== undefined && { hint }) };
}

/** Returns the nesting depth of a policy's expressions. Cedar's JSON has two levels for each expression. */
function depthOf({ conditions }: PolicyJson): number {
  return conditions.length + Math.ceil(Math.max(0, ...conditions.map(({ body }) => jsonDepth(body))) / 2);
}

function jsonDepth(node: unknown): number {
  if (typeof node !== 'object' || node === null) return 0;
  let deepest = 0;
  for (const child of Object.values(node)) deepest = Math.max(deepest, jsonDepth(child));
  return deepest + 1;
}
