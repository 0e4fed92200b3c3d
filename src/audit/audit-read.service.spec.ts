import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { CallContext } from '../kernel/call-context.js';
import { AuditReadService } from './audit-read.service.js';

const ctx = { org: { id: randomUUID() } } as CallContext;

function serviceOver(verify: () => Promise<{ valid: boolean }>): AuditReadService {
  const parts: ConstructorParameters<typeof AuditReadService> = [
    { read: (_ctx: unknown, _verb: unknown, work: () => unknown) => work() },
    {},
    { sealOrg: () => setImmediate() },
    { verify },
    {},
  ] as never;
  return new AuditReadService(...parts);
}

describe('verification of the audit', () => {
  it('runs one verification for the first request and one for all that arrive in the meantime', async () => {
    let walks = 0;
    const service = serviceOver(async () => {
      walks += 1;
      return { valid: true };
    });
    const first = service.verify(ctx);
    await setImmediate();
    const others = Array.from({ length: 20 }, () => service.verify(ctx));
    expect((await Promise.all([first, ...others])).every(({ valid }) => valid)).toBe(true);
    expect(walks).toBe(2);
  });

  it('fails only the requests of a failed verification, and not later ones', async () => {
    let walks = 0;
    const service = serviceOver(async () => {
      if (++walks === 1) throw new Error('the database went away');
      return { valid: true };
    });
    await expect(service.verify(ctx)).rejects.toThrow('went away');
    await expect(service.verify(ctx)).resolves.toMatchObject({ valid: true });
  });
});
