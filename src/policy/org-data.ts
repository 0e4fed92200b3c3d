import { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { RialtoError } from '../kernel/errors.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { OrgDataStore } from './auth/org-data.store.js';
import type { OrgTable } from './org-data.types.js';
import type { OrgEntity } from './auth/org.entity.js';
import { OrgService } from './org.service.js';

/**
 * Milliseconds after which the export of a stalled reader ends, before PostgreSQL ends its snapshot
 * (org-data.store.ts).
 */
const idleTimeoutMs = 45_000;

/** Exports and deletes all data of an org, from the tables of all modules. */
@Injectable()
export class OrgData {
  private tables: readonly OrgTable[] = [];
  private exporting = false;

  constructor(
    private readonly acts: AdminActs,
    private readonly orgs: OrgService,
    private readonly store: OrgDataStore,
  ) {}

  /** Sets the tables. */
  consistsOf(tables: readonly OrgTable[]): void {
    this.tables = tables;
  }

  /**
   * Exports an org as JSON lines `{ kind, data }`, as of one moment. The last line is `{ kind: "end", lines }`;
   * without it the export is incomplete. A process runs one export at a time and cancels it when its reader stalls.
   * Throws `not_found`, `denied`, `unavailable`.
   */
  async export(ctx: CallContext, slug: string): Promise<Readable> {
    const org = await this.acts.write(ctx, 'org.export', { org: slug }, () => this.orgs.visible(ctx, slug));
    if (this.exporting)
      throw new RialtoError('unavailable', { message: 'another export is running', hint: 'try again in a minute' });
    this.exporting = true;
    let made = 0;
    let taken = 0;
    const lines = this.lines(org, (bytes) => (made += bytes));
    const stream = Readable.from(lines, { objectMode: false, highWaterMark: 65_536 });
    // Counts the bytes that the reader took: how far a stream reads ahead differs between versions of Node.
    const cancelWhenIdle = (): void => {
      const before = taken;
      taken = made - stream.readableLength;
      if (taken === before)
        stream.destroy(new RialtoError('canceled', { message: 'the client stopped reading the export' }));
    };
    const timer = setInterval(cancelWhenIdle, idleTimeoutMs);
    return stream.once('close', () => {
      clearInterval(timer);
      this.exporting = false;
    });
  }

  /** Deletes a batch of each table. Returns true when no row was left. */
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
