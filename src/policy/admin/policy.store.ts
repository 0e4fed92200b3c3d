import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { RialtoError } from '../../kernel/errors.js';
import { isUuid, type OrgId, type PolicyId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';
import { PolicyEntity, PolicyVersionEntity } from './policy.entity.js';

/** Reads and writes policies. Callers of every change first call `raiseVersion` in the same transaction. */
@Injectable()
export class PolicyStore {
  constructor(
    @InjectRepository(PolicyEntity) private readonly policies: Repository<PolicyEntity>,
    private readonly pg: Pg,
  ) {}

  findAll(org: string): Promise<PolicyEntity[]> {
    return this.policies.find({ where: { orgId: org as OrgId }, order: { name: 'ASC' } });
  }

  /** Returns one page in order of name, with one extra row when there are more. */
  findPage(org: OrgId, limit: number, afterName: string | undefined): Promise<PolicyEntity[]> {
    const query = this.policies
      .createQueryBuilder('policy')
      .where('policy.org_id = :org', { org })
      .orderBy('policy.name')
      .limit(limit + 1);
    if (afterName !== undefined) query.andWhere('policy.name > :afterName', { afterName });
    return query.getMany();
  }

  /** Finds a policy of one org by id or name. */
  find(org: OrgId, idOrName: string): Promise<PolicyEntity | null> {
    return this.policies.findOneBy(
      isUuid(idOrName) ? { orgId: org, id: idOrName as PolicyId } : { orgId: org, name: idOrName },
    );
  }

  findVersions(policy: PolicyId): Promise<PolicyVersionEntity[]> {
    return this.policies.manager.find(PolicyVersionEntity, {
      where: { policyId: policy },
      order: { version: 'DESC' },
      take: 200,
    });
  }

  /** Returns the version of an org's policy set. Every change raises it. */
  async version(org: string): Promise<string> {
    const [row] = await this.pg.rows<{ version: string }>(
      'policy-version',
      'select policy_version as version from orgs where id = :org',
      { org },
    );
    return row?.version ?? '';
  }

  /**
   * Raises the policy version of an org. Every change calls it first, so that the row lock serialises changes of one
   * org until the transaction ends. Throws `not_found` when the org was deleted in the meantime.
   */
  async raiseVersion(tx: Tx, org: OrgId): Promise<void> {
    const raise = 'update orgs set policy_version = policy_version + 1 where id = :org and deleted_at is null';
    const [, changed] = await queryIn<[unknown, number]>(tx, raise, { org });
    if (changed === 0) throw new RialtoError('not_found', { message: 'no such org' });
  }

  /** Reads the row again after `raiseVersion`, when no other transaction can change it; null when it was removed. */
  reread(tx: Tx, id: PolicyId): Promise<PolicyEntity | null> {
    return tx.manager.findOneBy(PolicyEntity, { id });
  }

  async insert(tx: Tx, row: PolicyEntity, by: string): Promise<void> {
    await tx.manager.getRepository(PolicyEntity).insert(row as never);
    await this.storeVersion(tx, row, by);
  }

  async update(tx: Tx, row: PolicyEntity, by: string): Promise<void> {
    const { id, name, text, template, source, version } = row;
    const columns = { name, text, template, source, version };
    await tx.manager.getRepository(PolicyEntity).update({ id }, columns as never);
    await this.storeVersion(tx, row, by);
  }

  async delete(tx: Tx, id: PolicyId): Promise<void> {
    await tx.manager.getRepository(PolicyEntity).delete({ id });
  }

  private async storeVersion(
    tx: Tx,
    { id: policyId, version, orgId, name, text }: PolicyEntity,
    by: string,
  ): Promise<void> {
    await tx.manager.getRepository(PolicyVersionEntity).insert({ policyId, version, orgId, name, text, createdBy: by });
  }
}
