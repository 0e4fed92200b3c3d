import type { Settings } from '../platform/config/settings.js';
import type { Notices } from '../platform/bus/notices.js';
import type { CredentialStore } from './auth/credential.store.js';
import type { IdentityFinder } from './auth/identity-finder.js';
import type { TokenRefusals } from './auth/token-refusals.js';
import { AuthService, type Identity } from './auth.service.js';

describe('AuthService', () => {
  const identity = { org: { id: 'o', slug: 'default' }, principal: { kind: 'service', id: 'ci' } } as Identity;
  const request = { headers: { authorization: 'Bearer rk_key' }, rawHeaders: [], socket: {} };
  const settings = { A2A_SECRET: 'secret', configFile: { published: [] } } as unknown as Settings;

  it('abuse 6 does not cache rights that were read before a change of credentials', async () => {
    let changed = (): void => undefined;
    const notices = {
      on: (_name: string, listen: () => void) => void (changed = listen),
      onMissed: () => undefined,
    } as unknown as Notices;
    let isValid = true;
    let reads = 0;
    const byToken = (): Promise<Identity | undefined> => {
      reads++;
      const found = isValid ? identity : undefined;
      if (reads === 1) {
        isValid = false;
        changed();
      }
      return Promise.resolve(found);
    };
    const finder = { byToken } as unknown as IdentityFinder;
    const auth = new AuthService(settings, {} as CredentialStore, finder, {} as TokenRefusals, notices);
    expect(await auth.whoIs(request)).toBe(identity);
    expect(await auth.whoIs(request)).toBeUndefined();
    isValid = true;
    expect([await auth.whoIs(request), await auth.whoIs(request), reads]).toEqual([identity, identity, 3]);
  });
});
