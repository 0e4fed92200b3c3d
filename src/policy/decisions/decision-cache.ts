import { hash } from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import type { Principal } from '../../kernel/call-context.js';
import type { PolicyDecision } from '../cedar/cedar.js';
import { includes } from '../cedar/context-reads.js';
import { inputTags, messageContext, type AgentFacts, type PolicyCall, type TaskFacts } from '../cedar/entities.js';
import type { PolicySet } from '../cedar/policy-set.js';

/** Longer keys are hashed, so that a long argument does not stay in memory. */
const maxKeyLength = 512;

// Principals come from the cache of verified tokens, so that one object serves many calls.
const fingerprints = new WeakMap<Principal, string>();

/**
 * Returns a key of everything that a decision depends on: the set, the caller with its groups, the action, the resource
 * with its facts, and the context that the set reads. Undefined when a decision cannot be cached: the set reads the
 * time, or an unreadable argument.
 */
export function decisionKey(set: PolicySet, call: PolicyCall): string | undefined {
  const { attributes, tags } = set.reads;
  if (includes(attributes, 'time')) return undefined;
  const input = includes(attributes, 'input') ? inputTags(call, tags) : undefined;
  if (input && input.unreadable.length > 0) return undefined;
  const key = JSON.stringify([
    set.id,
    fingerprintOf(call.principal),
    agentVersion(call.caller),
    call.action,
    call.resource.type,
    call.task && !set.reads.singleTasks ? null : call.resource.id,
    call.resource.parent,
    agentVersion(call.agent),
    call.tool?.quarantined ?? false,
    taskVersion(call.task),
    includes(attributes, 'surface') ? call.surface : null,
    includes(attributes, 'depth') ? call.depth : null,
    includes(attributes, 'approved') ? (call.approved ?? false) : null,
    messageContext(call, attributes),
    input?.tags,
  ]);
  return key.length > maxKeyLength ? hash('sha256', key, 'base64') : key;
}

/**
 * Caches decisions and drops the least recently used ones. A changed policy gives a new set, so that old decisions
 * are never used again.
 */
export class DecisionCache {
  private readonly entries: BoundedMap<string, PolicyDecision>;

  constructor(maxEntries = 10_000) {
    this.entries = new BoundedMap(maxEntries);
  }

  get size(): number {
    return this.entries.size;
  }

  get(key: string): PolicyDecision | undefined {
    return this.entries.use(key);
  }

  /** Stores a decision, unless it has errors. */
  set(key: string, decision: PolicyDecision): void {
    if (decision.errors.length === 0) this.entries.set(key, decision);
  }

  /** Removes all decisions, e.g. when notices may have been missed. */
  clear(): void {
    this.entries.clear();
  }
}

function fingerprintOf(principal: Principal): string {
  let fingerprint = fingerprints.get(principal);
  if (fingerprint === undefined) {
    const { kind, id, role, groups } = principal;
    fingerprint = hash('sha256', JSON.stringify([kind, id, role, [...groups].sort()]), 'base64');
    fingerprints.set(principal, fingerprint);
  }
  return fingerprint;
}

/** Returns the version of the facts, or the facts themselves when they have none. */
function agentVersion(facts: AgentFacts | undefined): unknown {
  if (!facts) return null;
  return facts.version ?? [facts.url ?? '', facts.trustLevel ?? '', facts.skills ?? [], facts.quarantined ?? false];
}

function taskVersion(facts: TaskFacts | undefined): unknown {
  if (!facts) return null;
  return facts.version ?? [facts.agent ?? '', facts.owner?.kind ?? '', facts.owner?.id ?? ''];
}
