import { AuditRetention } from '../../../src/audit/audit.retention.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('retention of the audit', () => {
  let rialto: TestGateway;
  beforeAll(async () => {
    rialto = await startTestGateway({ RIALTO_AUDIT_RETENTION_DAYS: '30', RIALTO_ROLE: 'api' });
  });
  afterAll(() => rialto.close());

  const verify = async () => (await rialto.call('POST', '/api/audit/verify')).body as Record<string, unknown>;
  /**
   * Moves the events of a verb into the past. They are not sealed yet, because a process with the role `api` runs no
   * sealer.
   */
  const age = async (verb: string) => {
    await rialto.sql('alter table audit_events disable trigger all');
    await rialto.sql(
      `update audit_events e set at = past.at, event = jsonb_set(event, '{at}', to_jsonb(past.text)) from (
         select id, at - interval '40 days' as at,
           to_char((at - interval '40 days') at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as text
         from audit_events
       ) past where past.id = e.id and e.event->>'verb' = $1`,
      [verb],
    );
    await rialto.sql('alter table audit_events enable trigger all');
  };

  it('RE-84 drops only a sealed prefix, keeps the rest verifiable, and detects an unsigned cut', async () => {
    for (const name of ['a', 'b', 'c']) await rialto.call('POST', '/api/keys', { name });
    await age('key.create');
    await rialto.call('POST', '/api/orgs', { slug: 'kept' });
    await expect(verify()).resolves.toMatchObject({ valid: true, firstSequence: 1 });
    const before = (await verify()).eventCount as number;

    await rialto.gateway.get(AuditRetention).sweep();
    const after = await verify();
    expect(after).toMatchObject({ valid: true, brokenAt: null, eventCount: before - 3, firstSequence: 4 });
    await rialto.call('POST', '/api/keys', { name: 'later' });
    await expect(verify()).resolves.toMatchObject({ valid: true, firstSequence: 4 });

    await rialto.sql(`alter table audit_checkpoints disable trigger all`);
    await rialto.sql(
      `update audit_checkpoints
       set sequence = sequence + 1, hash = (select hash from audit_chain order by sequence limit 1)
       where cut`,
    );
    await expect(verify()).resolves.toMatchObject({ valid: false });
  });
});
