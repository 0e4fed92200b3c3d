import type { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { AdminActs } from '../platform/bus/admin-acts.js';
import { ExportStream } from '../platform/http/export-stream.js';
import { OrgDataStore } from './orgs/org-data.store.js';
import type { OrgTable } from './org-data.types.js';
import type { OrgEntity } from './orgs/org.entity.js';
import { OrgService } from './org.service.js';

/** Exports and deletes all data of an org, from the tables of all modules. */
@Injectable()
export class OrgData {
  private tables: readonly OrgTable[] = [];
  private readonly exports = new ExportStream();

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
    const org = await this.acts.record(ctx, 'org.export', { org: slug }, () => this.orgs.visibleOrg(ctx, slug));
    return this.exports.open(this.lines(org));
  }

  /** Deletes a batch of each table. Returns true when no row was left. */
  async dropSome(orgId: string): Promise<boolean> {
    let dropped = 0;
    for (const table of this.tables) if (!table.outlivesOrg) dropped += await this.store.dropBatch(table, orgId);
    return dropped === 0;
  }

  private async *lines({ id, slug, name, createdAt }: OrgEntity): AsyncGenerator<string> {
    yield line('org', JSON.stringify({ id, slug, name, createdAt }));
    let lines = 1;
    for await (const rows of this.store.rows(this.tables, id)) {
      lines += rows.length;
      yield rows.map(({ kind, data }) => line(kind, data)).join('');
    }
    yield `${JSON.stringify({ kind: 'end', lines })}\n`;
  }
}

function line(kind: string, data: string): string {
  return `{"kind":${JSON.stringify(kind)},"data":${data}}\n`;
}
