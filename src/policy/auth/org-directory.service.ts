import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import type { OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import { Pg } from '../../platform/database/pg.js';
import { SnapshotCache } from '../../platform/database/snapshot-cache.js';
import { Slug } from '../../platform/http/params.js';

/** What doors need to know of an org before anyone is authenticated. */
export interface OrgEntry extends OrgRef {
  readonly name: string;
  /** Name of the published agent that answers when a caller names none. */
  readonly defaultAgent: string | null;
}

/** Orgs by slug, from memory: one indexed look a second at most, and none while nothing changed. */
@Injectable()
export class OrgDirectory {
  private readonly entries = new SnapshotCache<OrgEntry | null>({
    // The row is small enough to be its own version.
    probe: (slug) => this.read(slug),
    load: (_slug, text) => Promise.resolve(JSON.parse(text) as OrgEntry | null),
  });

  constructor(
    private readonly pg: Pg,
    notices: Notices,
  ) {
    for (const notice of ['org.changed', 'credentials.changed'] as const)
      notices.on(notice, () => this.entries.expireAll());
    notices.onMissed(() => this.entries.expireAll());
  }

  /** Undefined for an org that does not exist or was deleted. */
  async find(slug: string): Promise<OrgEntry | undefined> {
    return Slug.safeParse(slug).success ? ((await this.entries.get(slug)) ?? undefined) : undefined;
  }

  /** The same without a promise while it is fresh; null when there is no such org, undefined when one has to ask. */
  peek(slug: string): OrgEntry | null | undefined {
    return this.entries.peek(slug);
  }

  /** The org of an id, deleted or not. */
  async byId(id: OrgId): Promise<OrgRef | undefined> {
    const [row] = await this.pg.rows<{ id: OrgId; slug: string }>(
      'org-by-id',
      'select id, slug from orgs where id = $1',
      [id],
    );
    return row;
  }

  private async read(slug: string): Promise<string> {
    const [row] = await this.pg.rows<{ entry: string }>(
      'org-entry',
      `select json_build_object('id', id, 'slug', slug, 'name', name, 'defaultAgent', default_agent)::text as entry
       from orgs where slug = $1 and deleted_at is null`,
      [slug],
    );
    return row?.entry ?? 'null';
  }
}
