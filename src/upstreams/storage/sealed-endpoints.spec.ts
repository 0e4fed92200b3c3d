import { Vault } from '../../platform/secrets/vault.js';
import type { OrgId } from '../../kernel/ids.js';
import { SealedEndpoints, withHeaders } from './sealed-endpoints.js';

describe('SealedEndpoints', () => {
  const web = { transport: 'websocket', url: 'ws://x', headers: { 'X-USER': 'all', 'x-shared': 's' } } as const;

  it('replaces a shared header by the header of the user, ignoring case', () => {
    expect(withHeaders(web, { 'x-user': 'ann' })).toEqual({ ...web, headers: { 'x-shared': 's', 'x-user': 'ann' } });
  });

  it('opens the headers of a user only for that user, server and origin', () => {
    const places = new SealedEndpoints(new Vault(Buffer.alloc(32, 1)));
    const { transport, url } = web;
    const row = { id: 'a', orgId: 'o' as OrgId, transport, url, program: null, secrets: null, source: 'api' as const };
    const user = { id: 'c', caller: 'user:ann', origin: 'ws://x' };
    const sealed = places.sealUser(row, user, { Authorization: 'canary' });
    expect(sealed).not.toContain('canary');
    expect(places.endpointOf(row, { ...user, sealed })).toMatchObject({ headers: { Authorization: 'canary' } });
    const others = [
      [row, { ...user, caller: 'user:bob' }],
      [row, { ...user, origin: 'ws://y' }],
      [{ ...row, id: 'b' }, user],
      [{ ...row, orgId: 'p' as OrgId }, user],
    ] as const;
    for (const [at, owner] of others) expect(() => places.endpointOf(at, { ...owner, sealed })).toThrow('moved');
  });
});
