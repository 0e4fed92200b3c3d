import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { OrgDataStore } from './auth/org-data.store.js';
import type { OrgTable } from './org-data.types.js';
import type { OrgEntity } from './auth/org.entity.js';
import { OrgService } from './org.service.js';

/** The snapshot of a reader who stalls is given up before the database gives it up (org-data.store.ts). */
const patienceMs = 45_000;

/** Everything that an org has, whichever room it is in. */
@Injectable()
export class OrgData {
  private tables: readonly OrgTable[] = [];
  private exporting = false;

  constructor(
    private readonly acts: AdminActs,
    private readonly orgs: OrgService,
    private readonly store: OrgDataStore,
  ) {}

  /** Tells which tables there are. */
  consistsOf(tables: readonly OrgTable[]): void {
    this.tables = tables;
  }

  /**
   * JSON lines `{ kind, data }` as of one moment; the last one is `{ kind: "end", lines }`, and without it something is missing.
   * One at a time in a process; it breaks off when nobody reads on. Throws `not_found`, `denied`, `unavailable`.
   */
  async export(ctx: CallContext, slug: string): Promise<Readable> {
    const org = await this.acts.write(ctx, 'org.export', { org: slug }, () => this.orgs.visible(ctx, slug));
    if (this.exporting)
      throw new RialtoError('unavailable', { message: 'another org is being exported', hint: 'try again in a minute' });
    this.exporting = true;
    let made = 0;
    let taken = 0;
    const lines = this.lines(org, (bytes) => (made += bytes));
    const stream = Readable.from(lines, { objectMode: false, highWaterMark: 65_536 });
    // How far ahead a stream asks differs between versions of Node; what its reader has taken does not.
    const look = (): void => {
      const before = taken;
      taken = made - stream.readableLength;
      if (taken === before) stream.destroy(new RialtoError('canceled', { message: 'nobody reads the export' }));
    };
    const patience = setInterval(look, patienceMs);
    return stream.once('close', () => {
      clearInterval(patience);
      this.exporting = false;
    });
  }

  /** Drops a batch of each table; true when nothing was left. */
  async dropSome(orgId: string): Promise<boolean> {
    let dropped = 0;
    for (const table of this.tables) if (!table.outlivesOrg) dropped += await this.store.dropBatch(table, orgId);
    return dropped === 0;
  }

  private async *lines(org: OrgEntity, onMade: (bytes: number) => void): AsyncGenerator<Buffer> {
    const { id, slug, name, createdAt } = org;
    const made = (text: string): Buffer => {
      const bytes = Buffer.from(text);
      onMade(bytes.length);
      return bytes;
    };
    yield made(line('org', JSON.stringify({ id, slug, name, createdAt })));
    let lines = 1;
    for await (const rows of this.store.rows(this.tables, id)) {
      lines += rows.length;
      yield made(rows.map(({ kind, data }) => line(kind, data)).join(''));
    }
    yield made(`${JSON.stringify({ kind: 'end', lines })}\n`);
  }
}

function line(kind: string, data: string): string {
  return `{"kind":${JSON.stringify(kind)},"data":${data}}\n`;
}
