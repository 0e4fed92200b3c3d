import type { TrustTier } from '../../kernel/trust.js';

/** Kinds of quotas. A quota of messages is for each day in UTC, one of webhooks for each published agent. */
export type QuotaKind = 'agents' | 'messages' | 'groups' | 'webhooks';

const quotas: Readonly<Record<TrustTier, Readonly<Record<QuotaKind, number>>>> = {
  0: { agents: 0, messages: 0, groups: 0, webhooks: 0 },
  1: { agents: 3, messages: 100, groups: 5, webhooks: 3 },
  2: { agents: 10, messages: 1_000, groups: 25, webhooks: 10 },
  3: { agents: Infinity, messages: Infinity, groups: Infinity, webhooks: Infinity },
};

/** The quota of a tier (RI-49); infinite for an organisation. */
export function quotaOf(tier: TrustTier, kind: QuotaKind): number {
  return quotas[tier][kind];
}

const dayMs = 86_400_000;

/** The start of the next day in UTC, in milliseconds since the epoch. @param now milliseconds since the epoch. */
export function nextDay(now: number): number {
  return (Math.floor(now / dayMs) + 1) * dayMs;
}

const words: Readonly<Record<QuotaKind, (limit: number) => string>> = {
  agents: (limit) => `may publish ${limit} agents`,
  messages: (limit) => `may send ${limit} messages a day`,
  groups: (limit) => `may have ${limit} groups of members and keys`,
  webhooks: (limit) => `may have ${limit} webhooks for each agent`,
};

/** The sentence of a refusal. */
export function quotaText(tier: TrustTier, kind: QuotaKind): string {
  return `an org of trust tier ${tier} ${words[kind](quotaOf(tier, kind))}`;
}
