import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { PublishedAgentStore } from './published-agent.store.js';
import { PublishedViews } from './published-views.js';
import type { PublishedQuery, PublishedView } from './publishing.types.js';

/** Shows published agents to admins. */
@Injectable()
export class PublishedReadService {
  constructor(
    private readonly admin: AdminActs,
    private readonly store: PublishedAgentStore,
    private readonly views: PublishedViews,
    private readonly cursors: Cursors,
  ) {}

  list(ctx: CallContext, query: PublishedQuery): Promise<Page<PublishedView>> {
    return this.admin.read(ctx, 'published.list', async () => {
      const scope = `published:${ctx.org.id}`;
      const [after] = query.cursor ? this.cursors.decode(scope, query.cursor, 1) : [];
      const rows = await this.store.findPage(ctx.org.id, query, after);
      const views = await this.views.viewRows(rows, ctx.org);
      return pageOf(
        rows,
        query.limit,
        (row) => views.get(row.id)!,
        (row) => this.cursors.encode(scope, [row.name]),
      );
    });
  }

  get(ctx: CallContext, idOrName: string): Promise<PublishedView> {
    return this.admin.read(ctx, 'published.get', async () =>
      this.views.viewRow(await this.store.findOrFail(ctx.org.id, idOrName), ctx.org),
    );
  }
}
