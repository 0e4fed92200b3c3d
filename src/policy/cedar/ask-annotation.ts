import type { PolicyJson } from '@cedar-policy/cedar-wasm/nodejs';
import type { Action, NeededApproval } from '../../kernel/verbs.js';

/** The actions that a person can approve: calls, because an approval can be bound to their whole content. */
const askableActions: readonly Action[] = ['a2a_invoke', 'mcp_call', 'task_submit'];

const units = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const duration = /^([1-9]\d{0,3})([smhd])$/;
/** How long an approval lives without `@expires`. */
const usualLifetimeMs = 15 * units.m;
const maxLifetimeMs = 7 * units.d;

export function isAskable(action: Action): boolean {
  return askableActions.includes(action);
}

/**
 * Returns the approval that a policy asks for: a forbid with `@ask("group")`, which lives as long as `@expires("15m")`
 * says. Undefined for every other policy.
 */
export function approvalOf({ effect, annotations }: PolicyJson): NeededApproval | undefined {
  if (effect !== 'forbid' || annotations?.ask === undefined) return undefined;
  return { groups: [annotations.ask || 'admin'], lifetimeMs: lifetimeOf(annotations.expires) ?? usualLifetimeMs };
}

/** Returns one approval in place of several: its approver is in all groups, and it lives as long as the shortest. */
export function allOf(needed: readonly NeededApproval[]): NeededApproval {
  const groups = [...new Set(needed.flatMap((one) => one.groups))].sort();
  return { groups, lifetimeMs: Math.min(...needed.map(({ lifetimeMs }) => lifetimeMs)) };
}

/** Returns what is wrong with `@ask` and `@expires` of a policy; undefined when nothing is. */
export function askProblem(policy: PolicyJson): string | undefined {
  const { ask, expires } = policy.annotations ?? {};
  if (ask === undefined) return expires === undefined ? undefined : '@expires is only for a policy with @ask';
  if (policy.effect !== 'forbid') return '@ask is only for a forbid: it asks for an approval instead of refusing';
  if (ask !== null && ask.length > 200) return '@ask names a group of more than 200 characters';
  if (expires !== undefined && lifetimeOf(expires) === undefined)
    return '@expires must be a time from "1s" to "7d", such as "15m"';
  return namesOnlyAskable(policy)
    ? undefined
    : `a policy with @ask must name its actions, all of them among: ${askableActions.join(', ')}`;
}

/** Returns milliseconds; undefined for a text that is not a time of at most seven days. */
export function lifetimeOf(text: string | null | undefined): number | undefined {
  const [, count, unit] = duration.exec(text ?? '') ?? [];
  const ms = unit === undefined ? undefined : Number(count) * units[unit as keyof typeof units];
  return ms !== undefined && ms <= maxLifetimeMs ? ms : undefined;
}

function namesOnlyAskable({ action }: PolicyJson): boolean {
  if (action.op === 'All' || 'slot' in action) return false;
  const named = 'entities' in action ? action.entities : [action.entity];
  return named.every((uid) => isAskable(('type' in uid ? uid.id : uid.__entity.id) as Action));
}
