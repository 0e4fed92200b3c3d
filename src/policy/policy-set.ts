import { createHash } from 'node:crypto';
import type { DetailedError } from '@cedar-policy/cedar-wasm/nodejs';
import { actions } from '../kernel/verbs.js';
import { builtinPolicies, reservedPrefix, type PolicyText } from './builtin.js';
import { cedarError, guarded } from './cedar-guard.js';
import { contextReads, type ContextReads } from './context-reads.js';
import { judge, messageOf, parsePolicies, type ParsedPolicy } from './validate.js';

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

let sets = 0;

// A change of one policy compiles the whole set again; texts that stayed were parsed and judged before. A judgement depends on
// the text alone, for the schema is fixed.
const parses = new Remembered<ReturnType<typeof parsePolicies>>(2_000);
const judgements = new Remembered<DetailedError | 'valid'>(4_000);

function parsedOnce(text: string): ReturnType<typeof parsePolicies> {
  const known = parses.get(text);
  if (known) return known;
  const parsed = parsePolicies(text);
  parses.set(text, parsed);
  return parsed;
}

/** Makes a set of the built-in guards and these rows. Never throws for their sake: what is broken denies. */
export function compilePolicies(rows: readonly PolicyText[]): PolicySet {
  const policies = new Map<string, ParsedPolicy>();
  const names = new Map<string, string>();
  const broken: BrokenPolicy[] = [];
  for (const [index, row] of [...builtinPolicies, ...rows].entries()) {
    const { policies: parsed, violations } = guarded(() => parsedOnce(row.text), unparsable);
    if (violations[0]) broken.push({ policy: row.name, why: violations[0].description });
    for (const [position, policy] of parsed.entries()) {
      const id = String(policies.size);
      policies.set(id, policy);
      names.set(id, nameOf(row.name, policy, parsed.length > 1 ? position : undefined, index < builtinPolicies.length));
    }
    if (policies.size > maxPolicies + builtinPolicies.length) {
      broken.push({ policy: row.name, why: `it is beyond the limit of ${maxPolicies} policies` });
      break;
    }
  }
  broken.push(...invalid(policies, names));
  const sources = Object.fromEntries([...policies].map(([id, { text }]) => [id, text]));
  const reads = contextReads([...policies.values()].map(({ json }) => json));
  return { id: String(++sets), version: versionOf(rows), reads, broken, names, sources };
}

/** Policies that strict validation refuses: an unknown type in a forbid would never match, and so fail open (abuse 14). */
function invalid(policies: ReadonlyMap<string, ParsedPolicy>, names: ReadonlyMap<string, string>): BrokenPolicy[] {
  const fresh = new Map([...policies].filter(([, { text }]) => judgements.get(text) === undefined));
  const errors = guarded(
    () => judge(fresh, false),
    (why) => new Map([...fresh.keys()].map((id) => [id, [cedarError(why)]])),
  );
  for (const [id, { text }] of fresh) judgements.set(text, errors.get(id)?.[0] ?? 'valid');
  return [...policies].flatMap(([id, policy]) => {
    const first = judgements.get(policy.text) ?? 'valid';
    if (first === 'valid') return [];
    return [{ policy: names.get(id) ?? id, why: messageOf(first), actions: actionsOf(policy) }];
  });
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

function unparsable(why: string): ReturnType<typeof parsePolicies> {
  return { policies: [], violations: [{ field: 'text', description: why }] };
}
