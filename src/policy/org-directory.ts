import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import type { OrgId } from '../kernel/ids.js';
import { Notices } from '../platform/bus/notices.js';
import { Pg } from '../platform/database/pg.js';
import { SnapshotCache } from '../platform/database/snapshot-cache.js';
import { Slug } from '../platform/http/params.js';
import { Domain } from './org.types.js';

/** Data of an org that doors need before they authenticate a caller. */
export interface OrgEntry extends OrgRef {
  readonly name: string;
  /** Name of the published agent for callers that name none. */
  readonly defaultAgent: string | null;
}

/**
 * Finds orgs by slug or domain, from memory: at most one indexed query a second for each name, and none while it is
 * fresh.
 */
@Injectable()
export class OrgDirectory {
  private readonly entries = new SnapshotCache<OrgEntry | null>({
    // The row is small enough to be its own version.
    probe: (name) => this.readEntry(name),
    load: (_name, text) => Promise.resolve(JSON.parse(text) as OrgEntry | null),
  });

  constructor(
    private readonly pg: Pg,
    notices: Notices,
  ) {
    for (const notice of ['org.changed', 'credentials.changed'] as const)
      notices.on(notice, () => this.entries.expireAll());
    notices.onMissed(() => this.entries.expireAll());
  }

  /**
   * Finds an org; undefined when it does not exist or was deleted.
   * @param name a slug, or a domain in lower case.
   */
  async find(name: string): Promise<OrgEntry | undefined> {
    const known = this.peek(name);
    if (known !== undefined) return known ?? undefined;
    const isName = Slug.safeParse(name).success || Domain.safeParse(name).success;
    return isName ? ((await this.entries.get(name)) ?? undefined) : undefined;
  }

  /** Returns the cached org without a promise; null when there is no such org, undefined when it is not cached. */
  peek(name: string): OrgEntry | null | undefined {
    return this.entries.peek(name);
  }

  /** Returns the org of an id, deleted or not. */
  async byId(id: OrgId): Promise<OrgRef | undefined> {
    const [row] = await this.pg.rows<{ id: OrgId; slug: string }>(
      'org-by-id',
      'select id, slug from orgs where id = :id',
      { id },
    );
    return row;
  }

  private async readEntry(name: string): Promise<string> {
    const [row] = await this.pg.rows<{ entry: string }>(
      'org-entry',
      `
      select
        json_build_object(
          'id', id, 'slug', slug, 'name', name, 'trustTier', trust_tier, 'defaultAgent', default_agent
        )::text as entry
      from orgs
      where (slug = :name or id = (select org_id from org_domains where domain = :name)) and deleted_at is null`,
      { name },
    );
    return row?.entry ?? 'null';
  }
}
