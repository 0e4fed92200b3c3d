import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { IsNull, Repository } from 'typeorm';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { newId, type OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import { isUniqueViolation } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { defaultOrg } from '../org.types.js';
import { OrgEntity } from './org.entity.js';

export const declarationLock = 7_262_913;

/** Reads and writes the rows of orgs, and publishes their changes. */
@Injectable()
export class OrgStore {
  constructor(
    @InjectRepository(OrgEntity) private readonly orgs: Repository<OrgEntity>,
    private readonly notices: Notices,
  ) {}

  /** Finds an org that is not deleted. */
  async find(slug: string, tx?: Tx): Promise<OrgEntity | undefined> {
    const orgs = tx?.manager.getRepository(OrgEntity) ?? this.orgs;
    return (await orgs.findOneBy({ slug, deletedAt: IsNull() })) ?? undefined;
  }

  /** Finds an org, deleted or not. */
  findById(id: OrgId): Promise<OrgEntity | null> {
    return this.orgs.findOneBy({ id });
  }

  /** Returns the time of the last change of an org; empty for an unknown org. */
  async version(id: OrgId): Promise<string> {
    const org = await this.orgs.findOne({ where: { id }, select: { updatedAt: true } });
    return org?.updatedAt.toISOString() ?? '';
  }

  /**
   * Returns one page in order of slug, with one extra row when there are more.
   * @param only restricts the page to one org.
   */
  findPage(limit: number, afterSlug: string | undefined, only: OrgId | undefined): Promise<OrgEntity[]> {
    const query = this.orgs
      .createQueryBuilder('org')
      .where('org.deleted_at is null')
      .orderBy('org.slug')
      .limit(limit + 1);
    if (only !== undefined) query.andWhere('org.id = :only', { only });
    if (afterSlug !== undefined) query.andWhere('org.slug > :afterSlug', { afterSlug });
    return query.getMany();
  }

  /** Makes processes that declare orgs at the same time wait for each other, until the transaction ends. */
  async lockDeclarations(tx: Tx): Promise<void> {
    await queryIn(tx, 'select pg_advisory_xact_lock(:key)', { key: declarationLock });
  }

  /** Throws `conflict` when an org with the slug exists. */
  async insert(tx: Tx, slug: string, name: string): Promise<OrgEntity> {
    const id = newId<OrgId>();
    const orgs = tx.manager.getRepository(OrgEntity);
    try {
      await orgs.insert({ id, slug, name, ...(slug === defaultOrg && { trustTier: 3 }) });
    } catch (error) {
      if (isUniqueViolation(error)) throw new RialtoError('conflict', { message: `the org "${slug}" already exists` });
      throw error;
    }
    this.notices.tell(tx, 'org.changed', { orgId: id });
    return orgs.findOneByOrFail({ id });
  }

  /**
   * Updates the given columns of an org that is not deleted. Changes by others to other columns stay. Throws
   * `not_found`.
   */
  async update(tx: Tx, id: OrgId, columns: Partial<OrgEntity>): Promise<OrgEntity> {
    await this.writeColumns(tx, id, columns);
    this.notices.tell(tx, 'org.changed', { orgId: id });
    return tx.manager.findOneByOrFail(OrgEntity, { id });
  }

  /** Like `update`, but writes nothing when the columns are already equal. */
  async updateDifferent(tx: Tx, org: OrgEntity, columns: Partial<OrgEntity>): Promise<void> {
    const differs = (Object.keys(columns) as (keyof OrgEntity)[]).some((key) => org[key] !== columns[key]);
    if (differs) await this.update(tx, org.id, columns);
  }

  /** Marks an org as deleted and frees its slug. All its credentials stop. Throws `not_found`. */
  async delete(tx: Tx, { id, slug }: Pick<OrgEntity, 'id' | 'slug'>): Promise<void> {
    await this.writeColumns(tx, id, { deletedAt: new Date(systemClock.now()), slug: `${slug}~${id}` });
    this.notices.tell(tx, 'credentials.changed', { orgId: id });
  }

  private async writeColumns(tx: Tx, id: OrgId, columns: Partial<OrgEntity>): Promise<void> {
    const { affected } = await tx.manager.getRepository(OrgEntity).update({ id, deletedAt: IsNull() }, columns);
    if (affected === 0) throw new RialtoError('not_found', { message: 'no such org' });
  }
}
