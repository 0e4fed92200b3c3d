import { trustTiers } from '../../kernel/trust.js';
import { nextDay, quotaOf, quotaText, type QuotaKind } from './trust-tiers.js';

describe('trust tiers', () => {
  it('have the quotas of agents, messages a day, groups and webhooks for each agent', () => {
    const kinds: QuotaKind[] = ['agents', 'messages', 'groups', 'webhooks'];
    expect(trustTiers.map((tier) => kinds.map((kind) => quotaOf(tier, kind)))).toEqual([
      [0, 0, 0, 0],
      [3, 100, 5, 3],
      [10, 1_000, 25, 10],
      [Infinity, Infinity, Infinity, Infinity],
    ]);
  });

  it('name the quota in a refusal', () => {
    expect(quotaText(1, 'messages')).toBe('an org of trust tier 1 may send 100 messages a day');
  });

  it('begin a day at midnight in UTC', () => {
    const at = (text: string) => Date.parse(text);
    expect(nextDay(at('2026-02-28T23:59:59.999Z'))).toBe(at('2026-03-01T00:00:00Z'));
    expect(nextDay(at('2026-03-01T00:00:00Z'))).toBe(at('2026-03-02T00:00:00Z'));
  });
});
