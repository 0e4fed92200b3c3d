import { createHash } from 'node:crypto';
import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { actions, type NeededApproval } from '../../kernel/verbs.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import { approvalOf } from './ask-annotation.js';
import { builtinPolicies, reservedPrefix, type PolicyText } from './builtin.js';
import { cedarError, guarded } from './cedar-guard.js';
import { readingContext, type ContextReads } from './context-reads.js';
import type { Weight } from './policy-source.js';
import { judge, messageOf, nothing, parsePolicies, type ParsedPolicy, type ParsedText } from './validate.js';

/** A policy that cannot be evaluated safely. It denies every call that it may concern. */
export interface BrokenPolicy {
  readonly policy: string;
  readonly why: string;
  /** Actions that the policy concerns; undefined when they are unknown, which means all actions. */
  readonly actions?: ReadonlySet<string>;
}

/** The compiled policies of an org at one moment. `CedarEngine` decides by it. */
export interface PolicySet {
  /** Unique in this process: two sets never share cached decisions, even when their texts are equal. */
  readonly id: string;
  /** Hash of names and texts, equal in all processes. The log has it with each decision. */
  readonly version: string;
  readonly reads: ContextReads;
  readonly broken: readonly BrokenPolicy[];
  /** The name of each policy for people, by policy id: its `@id`, else the name of its row. */
  readonly names: ReadonlyMap<string, string>;
  /** The text of each policy, by policy id. */
  readonly sources: Readonly<Record<string, string>>;
  /** Total weight of all rows, without the built-in ones. */
  readonly weight: Weight;
  /** The policies that ask for an approval, by policy id. */
  readonly asking: ReadonlyMap<string, NeededApproval>;
  /** The set without the policies that ask; absent when there are none. */
  readonly withoutAsking?: PolicySet;
}

/** Maximum number of policies of one org, without the built-in ones. More would exceed the time for a decision. */
export const maxPolicies = 500;

/**
 * Maximum total weight of the policies of an org. Within it, compiling takes a few hundred milliseconds of processor
 * time, in pieces; the steps that cannot be split, giving the set to Cedar and each decision, take about 20 ms.
 */
const most: Weight = { bytes: 1_048_576, words: 12_000, patterns: 1_600 };
/**
 * A set that exceeds the maximum by this factor denies all calls: deciding by it would block the process. Older
 * versions had no limit, so such sets may be stored.
 */
const denyFactor = 17;
const weights: readonly (keyof Weight)[] = ['bytes', 'words', 'patterns'];
const weightNames: Readonly<Record<keyof Weight, string>> = {
  bytes: 'bytes',
  words: 'words',
  patterns: 'characters of `like` patterns with a wildcard before their end',
};

/**
 * Returns why a set is too heavy to be stored; undefined when it is within the limits, or not heavier than before.
 */
export function overweight(set: PolicySet, before?: PolicySet): string | undefined {
  const heavy = weights.find((kind) => set.weight[kind] > most[kind] && set.weight[kind] > (before?.weight[kind] ?? 0));
  return heavy && `the policies of an org may have at most ${most[heavy]} ${weightNames[heavy]} in total`;
}

function denyReason(count: number, weight: Weight): string | undefined {
  if (count > maxPolicies) return `the org exceeds the limit of ${maxPolicies} policies`;
  const heavy = weights.find((kind) => weight[kind] > most[kind] * denyFactor);
  return heavy && `with it the policies of the org have more than ${most[heavy] * denyFactor} ${weightNames[heavy]}`;
}

let sets = 0;

// A change of one policy compiles the whole set again. These caches keep the results for unchanged texts. A judgement
// depends only on the text, because the schema is fixed.
const parses = new BoundedMap<string, ParsedText>(2_000);
type Verdict = DetailedError | 'valid';
const judgements = new BoundedMap<string, Verdict>(4_000);

function parsedOnce(text: string): ParsedText {
  const known = parses.get(text);
  if (known) return known;
  const parsed = parsePolicies(text);
  parses.set(text, parsed);
  return parsed;
}

/**
 * Compiles the built-in guards and these rows to a set, in pieces of one text each. It never throws for a broken row:
 * the row denies.
 */
export function* compiling(rows: readonly PolicyText[]): Generator<void, PolicySet> {
  const policies = new Map<string, ParsedPolicy>();
  const names = new Map<string, string>();
  const broken: BrokenPolicy[] = [];
  let weight = nothing.weight;
  for (const [index, row] of [...builtinPolicies, ...rows].entries()) {
    const isBuiltin = index < builtinPolicies.length;
    const { policies: parsed, violations, weight: rowWeight } = guarded(() => parsedOnce(row.text), unparsable);
    if (violations[0]) broken.push({ policy: row.name, why: violations[0].description });
    for (const [position, policy] of parsed.entries()) {
      const id = String(policies.size);
      policies.set(id, policy);
      names.set(id, nameOf(row.name, policy, parsed.length > 1 ? position : undefined, isBuiltin));
    }
    if (!isBuiltin) weight = sum(weight, rowWeight);
    const excess = denyReason(policies.size - builtinPolicies.length, weight);
    if (excess !== undefined) {
      broken.push({ policy: row.name, why: excess });
      break;
    }
    yield;
  }
  broken.push(...(yield* judging(policies, names)));
  const sources = Object.fromEntries([...policies].map(([id, { text }]) => [id, text]));
  yield;
  const reads = yield* readingContext([...policies.values()].map(({ json }) => json));
  const asking = new Map(
    [...policies].flatMap(([id, { json }]) => (approvalOf(json) ? [[id, approvalOf(json)!]] : [])),
  );
  const set = { id: String(++sets), version: versionOf(rows), reads, broken, names, sources, weight, asking };
  return asking.size === 0 ? set : { ...set, withoutAsking: withoutAsking(set) };
}

function withoutAsking(set: PolicySet): PolicySet {
  const sources = Object.fromEntries(Object.entries(set.sources).filter(([id]) => !set.asking.has(id)));
  return { ...set, id: String(++sets), sources, asking: new Map() };
}

/** Compiles without pauses. */
export function compilePolicies(rows: readonly PolicyText[]): PolicySet {
  return atOnce(compiling(rows));
}

function sum(one: Weight, other: Weight): Weight {
  return { bytes: one.bytes + other.bytes, words: one.words + other.words, patterns: one.patterns + other.patterns };
}

/**
 * Number of characters that are judged in one piece. It is not smaller, because each piece parses the schema again.
 */
const pieceLength = 8_192;

/**
 * Returns the policies that strict validation refuses: a forbid with an unknown type would never match, and thus fail
 * open (abuse 14).
 */
function* judging(
  policies: ReadonlyMap<string, ParsedPolicy>,
  names: ReadonlyMap<string, string>,
): Generator<void, BrokenPolicy[]> {
  // Collected here, because other sets may evict the values from the cache before the end.
  const verdicts = new Map<string, Verdict>();
  const judged = (piece: ReadonlyMap<string, ParsedPolicy>): void => {
    for (const [id, verdict] of judgePiece(piece)) verdicts.set(id, verdict);
  };
  let piece = new Map<string, ParsedPolicy>();
  let length = 0;
  for (const [id, policy] of policies) {
    const known = judgements.get(policy.text);
    if (known !== undefined) {
      verdicts.set(id, known);
      continue;
    }
    if (piece.size > 0 && length + policy.text.length > pieceLength) {
      judged(piece);
      yield;
      piece = new Map();
      length = 0;
    }
    piece.set(id, policy);
    length += policy.text.length;
  }
  if (piece.size > 0) judged(piece);
  return [...policies].flatMap(([id, policy]) => {
    const verdict = verdicts.get(id)!;
    if (verdict === 'valid') return [];
    return [{ policy: names.get(id) ?? id, why: messageOf(verdict), actions: actionsOf(policy) }];
  });
}

function judgePiece(policies: ReadonlyMap<string, ParsedPolicy>): Map<string, Verdict> {
  const errors = guarded(
    () => judge(policies, false),
    (why) => new Map([...policies.keys()].map((id) => [id, [cedarError(why)]])),
  );
  return new Map(
    [...policies].map(([id, { text }]) => {
      const verdict = errors.get(id)?.[0] ?? 'valid';
      judgements.set(text, verdict);
      return [id, verdict];
    }),
  );
}

/** Returns the actions that a policy names; undefined when it names none or an unknown one. */
function actionsOf(policy: ParsedPolicy | undefined): ReadonlySet<string> | undefined {
  const action = policy?.json.action;
  if (!action || action.op === 'All' || 'slot' in action) return undefined;
  const named = 'entities' in action ? action.entities : [action.entity];
  const ids = named.map((uid) => ('type' in uid ? uid.id : uid.__entity.id));
  return ids.every((id) => Object.hasOwn(actions, id)) ? new Set(ids) : undefined;
}

function nameOf(row: string, { json }: ParsedPolicy, position: number | undefined, builtin: boolean): string {
  const id = json.annotations?.id;
  const claimed = id !== undefined && id !== '' && (builtin || !id.startsWith(reservedPrefix)) ? id : undefined;
  return claimed ?? (position === undefined ? row : `${row}#${position + 1}`);
}

function versionOf(rows: readonly PolicyText[]): string {
  const all = [...builtinPolicies, ...rows].map(({ name, text }) => [name, text]);
  return createHash('sha256').update(JSON.stringify(all)).digest('hex').slice(0, 16);
}

function unparsable(why: string): ParsedText {
  return { ...nothing, violations: [{ field: 'text', description: why }] };
}
