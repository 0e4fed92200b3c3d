import type { TestGateway } from '../gateway/gateway.js';

/** Removes the policies that a test added to the default org. */
export async function removePolicies(gateway: Pick<TestGateway, 'call'>): Promise<void> {
  for (const { id, source } of (await gateway.call('GET', '/api/policies')).body.items)
    if (source !== 'seed') await gateway.call('DELETE', `/api/policies/${id}`);
}
