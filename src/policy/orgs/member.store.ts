import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { callerOf } from '../../kernel/call-context.js';
import type { OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';
import type { SaveMember } from '../org.types.js';
import { MemberEntity } from './org.entity.js';

/** Reads and writes the members of orgs. Publishes changes of members, which end their streams. */
@Injectable()
export class MemberStore {
  constructor(
    @InjectRepository(MemberEntity) private readonly members: Repository<MemberEntity>,
    private readonly notices: Notices,
  ) {}

  find(orgId: OrgId, sub: string): Promise<MemberEntity | null> {
    return this.members.findOneBy({ orgId, sub });
  }

  /** Returns one page in order of subject, with one extra row when there are more. */
  findPage(org: OrgId, limit: number, afterSub: string | undefined): Promise<MemberEntity[]> {
    const query = this.members
      .createQueryBuilder('member')
      .where('member.org_id = :org', { org })
      .orderBy('member.sub')
      .limit(limit + 1);
    if (afterSub !== undefined) query.andWhere('member.sub > :afterSub', { afterSub });
    return query.getMany();
  }

  /** Adds a member, or changes its role, groups and `active`. */
  async save(tx: Tx, orgId: OrgId, { sub, role, groups, active }: SaveMember): Promise<void> {
    const wanted = { orgId, sub, role, groups, active };
    const members = tx.manager.getRepository(MemberEntity);
    const known = await members.findOne({ where: { orgId, sub }, lock: { mode: 'pessimistic_write' } });
    await members.upsert(wanted, ['orgId', 'sub']);
    // A new member has no open streams, and an unchanged member keeps its streams.
    const isChanged =
      known &&
      Object.entries(wanted).some(([name, value]) => !isDeepStrictEqual(known[name as keyof MemberEntity], value));
    if (isChanged) this.notifyCredentials(tx, orgId, sub);
  }

  /** Saves the members that differ from their rows. */
  async saveAll(tx: Tx, orgId: OrgId, members: readonly SaveMember[]): Promise<void> {
    const known = new Map((await tx.manager.findBy(MemberEntity, { orgId })).map((member) => [member.sub, member]));
    for (const member of members) {
      const { role, groups = [], active } = known.get(member.sub) ?? {};
      const isSame = role === member.role && active === member.active && groups.join() === member.groups.join();
      if (!isSame) await this.save(tx, orgId, member);
    }
  }

  /** Returns false when there was no such member. */
  async delete(tx: Tx, orgId: OrgId, sub: string): Promise<boolean> {
    const { affected } = await tx.manager.getRepository(MemberEntity).delete({ orgId, sub });
    if (affected !== 0) this.notifyCredentials(tx, orgId, sub);
    return affected !== 0;
  }

  private notifyCredentials(tx: Tx, orgId: OrgId, sub: string): void {
    this.notices.tell(tx, 'credentials.changed', { orgId, caller: callerOf({ kind: 'user', id: sub }) });
  }
}
