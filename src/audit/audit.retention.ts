import { Inject, Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { systemClock } from '../kernel/clock.js';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { Pg } from '../platform/database/pg.js';
import { Sweeps, type Sweeper } from '../platform/jobs/handles-job.decorator.js';
import { SigningKeys } from '../platform/secrets/signing-keys.js';
import { checkpointBytes } from './chain.js';

interface Prefix {
  readonly org_id: OrgId;
  readonly sequence: string;
  readonly hash: string;
}

/**
 * Drops events past RIALTO_AUDIT_RETENTION_DAYS: only a sealed prefix, and only behind a checkpoint that is signed as a cut, so
 * that the rest still verifies and nobody without the key can shorten a chain unseen.
 */
@Injectable()
@Sweeps('audit.retention')
export class AuditRetention implements Sweeper {
  readonly everyMs = 3_600_000;

  constructor(
    private readonly pg: Pg,
    private readonly keys: SigningKeys,
    @Inject(SETTINGS) private readonly settings: Settings,
  ) {}

  async sweep(): Promise<void> {
    const days = this.settings.RIALTO_AUDIT_RETENTION_DAYS;
    if (days === undefined) return;
    for (const prefix of await this.findPrefixes(days)) await this.cut(prefix);
  }

  /** Per org the last link before the first event that is kept. */
  private findPrefixes(days: number): Promise<Prefix[]> {
    return this.pg.rows<Prefix>(
      'audit-prefixes',
      `select c.org_id, c.sequence, c.hash from audit_chain c join (
         select c.org_id, min(c.sequence) filter (where e.at >= now() - make_interval(days => $1::int)) as kept, max(c.sequence) as last
         from audit_chain c join audit_events e on e.id = c.event_id group by c.org_id
       ) p on p.org_id = c.org_id and c.sequence = coalesce(p.kept, p.last + 1) - 1`,
      [days],
    );
  }

  private async cut({ org_id: org, sequence, hash }: Prefix): Promise<void> {
    const at = new Date(systemClock.now()).toISOString();
    const { kid, signature } = await this.keys.sign(
      checkpointBytes(org, { sequence: Number(sequence), hash }, at, true),
    );
    const client = await this.pg.connect();
    try {
      await client.query('begin');
      await this.drop(client, [org, sequence, hash, at, kid, signature]);
      await client.query('commit');
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  }

  private async drop(client: PoolClient, [org, sequence, ...signed]: string[]): Promise<void> {
    await client.query(`select pg_advisory_xact_lock(hashtextextended('audit:' || $1::text, 0))`, [org]);
    await client.query(`set local rialto.audit_cut = 'on'`);
    await client.query('delete from audit_checkpoints where org_id = $1 and sequence <= $2', [org, sequence]);
    await client.query(
      'insert into audit_checkpoints (org_id, sequence, hash, at, kid, signature, cut) values ($1, $2, $3, $4, $5, $6, true)',
      [org, sequence, ...signed],
    );
    await client.query(
      `with gone as (delete from audit_chain where org_id = $1 and sequence <= $2 returning event_id)
       delete from audit_events e using gone where e.id = gone.event_id`,
      [org, sequence],
    );
  }
}
