import { createHash } from 'node:crypto';
import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';
import { actions } from '../../kernel/verbs.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import { builtinPolicies, reservedPrefix, type PolicyText } from './builtin.js';
import { cedarError, guarded } from './cedar-guard.js';
import { readingContext, type ContextReads } from './context-reads.js';
import type { Weight } from './policy-source.js';
import { judge, messageOf, nothing, parsePolicies, type ParsedPolicy, type ParsedText } from './validate.js';

/** A policy that cannot be trusted to mean what it says: it denies every call it may have been about. */
export interface BrokenPolicy {
  readonly policy: string;
  readonly why: string;
  /** The actions it is about; absent when that cannot be told, and so all of them. */
  readonly actions?: ReadonlySet<string>;
}

/** The policies of an org as they were at one moment: a value, decided on by `CedarEngine`. */
export interface PolicySet {
  /** Unique in this process: two sets never share cached decisions, even of one text. */
  readonly id: string;
  /** Hash of names and texts, the same in every process; goes into the log with each decision. */
  readonly version: string;
  readonly reads: ContextReads;
  readonly broken: readonly BrokenPolicy[];
  /** By policy id, what people call it: its `@id`, else the name of its row. */
  readonly names: ReadonlyMap<string, string>;
  /** By policy id, its text. */
  readonly sources: Readonly<Record<string, string>>;
  /** Of all rows, without the built-in ones. */
  readonly weight: Weight;
}

/** The last values by text, oldest out first. */
class Remembered<Value> {
  private readonly values = new Map<string, Value>();

  constructor(private readonly most: number) {}

  get(text: string): Value | undefined {
    return this.values.get(text);
  }

  set(text: string, value: Value): void {
    this.values.set(text, value);
    if (this.values.size > this.most) this.values.delete(this.values.keys().next().value!);
  }
}

/** Policies of one org or slice, without the built-in ones; more would not decide within their budget (F46). */
export const maxPolicies = 500;

/**
 * What the policies of an org may weigh together, so that compiling them takes a few hundred milliseconds of processor time, in pieces, and
 * what cannot be cut, handing them to Cedar and each decision, about 20.
 */
const most: Weight = { bytes: 1_048_576, words: 12_000, patterns: 1_600 };
/** A set that is so many times heavier was stored before there was a limit, and denies: deciding by it would stop everybody. */
const unbearable = 17;
const weights: readonly (keyof Weight)[] = ['bytes', 'words', 'patterns'];
const weightNames: Readonly<Record<keyof Weight, string>> = {
  bytes: 'bytes',
  words: 'words',
  patterns: 'characters of `like` patterns with a wildcard before their end',
};

/** Why a set is too heavy to be stored; undefined when it is not, or when that was worse before. */
export function overweight(set: PolicySet, before?: PolicySet): string | undefined {
  const heavy = weights.find((kind) => set.weight[kind] > most[kind] && set.weight[kind] > (before?.weight[kind] ?? 0));
  return heavy && `the policies of an org may have ${most[heavy]} ${weightNames[heavy]} together`;
}

function beyondBearing(count: number, weight: Weight): string | undefined {
  if (count > maxPolicies) return `it is beyond the limit of ${maxPolicies} policies`;
  const heavy = weights.find((kind) => weight[kind] > most[kind] * unbearable);
  return heavy && `with it the policies of the org have more than ${most[heavy] * unbearable} ${weightNames[heavy]}`;
}

let sets = 0;

// A change of one policy compiles the whole set again; texts that stayed were parsed and judged before. A judgement depends on
// the text alone, for the schema is fixed.
const parses = new Remembered<ParsedText>(2_000);
type Verdict = DetailedError | 'valid';
const judgements = new Remembered<Verdict>(4_000);

function parsedOnce(text: string): ParsedText {
  const known = parses.get(text);
  if (known) return known;
  const parsed = parsePolicies(text);
  parses.set(text, parsed);
  return parsed;
}

/**
 * Makes a set of the built-in guards and these rows, in pieces of which each takes one text. Never throws for their sake: what is broken
 * denies.
 */
export function* compiling(rows: readonly PolicyText[]): Generator<void, PolicySet> {
  const policies = new Map<string, ParsedPolicy>();
  const names = new Map<string, string>();
  const broken: BrokenPolicy[] = [];
  let weight = nothing.weight;
  for (const [index, row] of [...builtinPolicies, ...rows].entries()) {
    const isBuiltin = index < builtinPolicies.length;
    const { policies: parsed, violations, weight: own } = guarded(() => parsedOnce(row.text), unparsable);
    if (violations[0]) broken.push({ policy: row.name, why: violations[0].description });
    for (const [position, policy] of parsed.entries()) {
      const id = String(policies.size);
      policies.set(id, policy);
      names.set(id, nameOf(row.name, policy, parsed.length > 1 ? position : undefined, isBuiltin));
    }
    if (!isBuiltin) weight = sum(weight, own);
    const excess = beyondBearing(policies.size - builtinPolicies.length, weight);
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
  return { id: String(++sets), version: versionOf(rows), reads, broken, names, sources, weight };
}

/** The same at once. */
export function compilePolicies(rows: readonly PolicyText[]): PolicySet {
  return atOnce(compiling(rows));
}

function sum(one: Weight, other: Weight): Weight {
  return { bytes: one.bytes + other.bytes, words: one.words + other.words, patterns: one.patterns + other.patterns };
}

/** So many characters are judged in one piece: reading the schema takes as long each time. */
const pieceLength = 8_192;

/** Policies that strict validation refuses: an unknown type in a forbid would never match, and so fail open (abuse 14). */
function* judging(
  policies: ReadonlyMap<string, ParsedPolicy>,
  names: ReadonlyMap<string, string>,
): Generator<void, BrokenPolicy[]> {
  // Not read from what is remembered at the end: meanwhile others may have taken its place there.
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

/** The actions a policy names, when it names only ones that exist. */
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
