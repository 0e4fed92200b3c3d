import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Cursors, pageOf, type Page } from '../../platform/http/cursor.js';
import { OrgService } from '../org.service.js';
import type { MemberView, SaveMember } from '../org.types.js';
import { TrustQuotas } from '../trust-quotas.js';
import { MemberStore } from './member.store.js';
import { MemberEntity } from './org.entity.js';

/** Administers the members of orgs. */
@Injectable()
export class MemberService {
  constructor(
    private readonly orgs: OrgService,
    private readonly store: MemberStore,
    private readonly admin: AdminActs,
    private readonly cursors: Cursors,
    private readonly quotas: TrustQuotas,
  ) {}

  list(
    ctx: CallContext,
    slug: string,
    { limit, cursor }: { limit: number; cursor?: string },
  ): Promise<Page<MemberView>> {
    return this.admin.read(ctx, 'member.list', async () => {
      const org = await this.orgs.visibleOrg(ctx, slug);
      const scope = `members:${org.id}`;
      const [after] = cursor ? this.cursors.decode(scope, cursor, 1) : [];
      const rows = await this.store.findPage(org.id, limit, after);
      return pageOf(rows, limit, memberView, (row) => this.cursors.encode(scope, [row.sub]));
    });
  }

  /** Adds a member, or changes its role, groups and `active`. Throws `not_found`, `rate_limited`. */
  save(ctx: CallContext, slug: string, input: SaveMember): Promise<MemberView> {
    return this.admin.prepareAndWrite(
      ctx,
      'member.save',
      { org: slug, sub: input.sub, role: input.role },
      () => this.orgs.visibleOrg(ctx, slug),
      async (tx, org) => {
        await this.store.save(tx, org.id, input);
        if (input.groups.length > 0) await this.quotas.requireGroups(tx, org.id);
        return memberView(await tx.manager.findOneByOrFail(MemberEntity, { orgId: org.id, sub: input.sub }));
      },
    );
  }

  remove(ctx: CallContext, slug: string, sub: string): Promise<void> {
    return this.admin.prepareAndWrite(
      ctx,
      'member.remove',
      { org: slug, sub },
      () => this.orgs.visibleOrg(ctx, slug),
      async (tx, org) => {
        if (!(await this.store.delete(tx, org.id, sub)))
          throw new RialtoError('not_found', { message: 'no such member' });
      },
    );
  }
}

function memberView({ sub, role, groups, active, createdAt }: MemberEntity): MemberView {
  return { sub, role, groups, active, createdAt: createdAt.toISOString() };
}
