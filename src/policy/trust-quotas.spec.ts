import type { OrgId } from '../kernel/ids.js';
import type { Settings } from '../platform/config/settings.js';
import { Metrics } from '../platform/telemetry/metrics.js';
import type { OrgService } from './org.service.js';
import type { TrustQuotaStore } from './trust/trust-quota.store.js';
import { TrustQuotas } from './trust-quotas.js';

describe('RI-49 the quota of messages', () => {
  const org = 'o' as OrgId;
  let counted: number;
  const store = {
    countMessage: () => Promise.resolve(++counted > 1 ? undefined : '2026-01-01'),
    uncountMessage: () => Promise.resolve(void counted--),
  } as unknown as TrustQuotaStore;
  const orgs = { trustTier: () => Promise.resolve(1) } as unknown as OrgService;
  const quotas = new TrustQuotas({ RIALTO_TRUST_QUOTAS: true } as Settings, orgs, store, new Metrics());
  beforeEach(() => void (counted = 0));

  it('counts a message that is stored', async () => {
    expect(await quotas.admitMessage(org, () => Promise.resolve('stored'))).toBe('stored');
    expect(counted).toBe(1);
  });

  it('does not count one that fails, or that another with its key replaced', async () => {
    await expect(quotas.admitMessage(org, () => Promise.reject(new Error('full')))).rejects.toThrow('full');
    expect(await quotas.admitMessage(org, () => Promise.resolve(undefined))).toBeUndefined();
    expect(counted).toBe(0);
  });

  it('stores nothing above the quota', async () => {
    counted = 1;
    const take = jest.fn();
    await expect(quotas.admitMessage(org, take)).rejects.toMatchObject({ code: 'rate_limited' });
    expect(take).not.toHaveBeenCalled();
  });
});
