import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { callerOf } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { isUuid, newId, type KeyId, type OrgId } from '../../kernel/ids.js';
import { Notices } from '../../platform/bus/notices.js';
import type { Tx } from '../../platform/database/tx.js';
import { hashKey, holderOf } from '../auth/api-key.js';
import type { CreateKey } from '../org.types.js';
import { ApiKeyEntity } from './org.entity.js';

/** Reads and writes the API keys of orgs. */
@Injectable()
export class ApiKeyStore {
  constructor(
    @InjectRepository(ApiKeyEntity) private readonly keys: Repository<ApiKeyEntity>,
    private readonly notices: Notices,
  ) {}

  /** Returns one page in order of id, with one extra row when there are more. */
  findPage(org: OrgId, limit: number, afterId: string | undefined): Promise<ApiKeyEntity[]> {
    const query = this.keys
      .createQueryBuilder('key')
      .where('key.org_id = :org', { org })
      .orderBy('key.id')
      .limit(limit + 1);
    if (afterId !== undefined) query.andWhere('key.id > :afterId', { afterId });
    return query.getMany();
  }

  /** Stores the hash of a key. */
  async insert(tx: Tx, orgId: OrgId, wanted: CreateKey, key: string): Promise<ApiKeyEntity> {
    const { name, role, groups, agent, expiresAt } = wanted;
    const row = {
      id: newId<KeyId>(),
      orgId,
      name,
      role,
      groups,
      agent: agent ?? null,
      secretHash: hashKey(key),
      hint: `${key.slice(0, 8)}…${key.slice(-4)}`,
      expiresAt: expiresAt ? new Date(expiresAt) : null,
      revokedAt: null,
    };
    await tx.manager.getRepository(ApiKeyEntity).insert(row);
    return { ...row, createdAt: new Date(systemClock.now()) };
  }

  /** Revokes a key and ends the streams of its holder. Returns false when the org has no such key. */
  async revoke(tx: Tx, orgId: OrgId, id: string): Promise<boolean> {
    const place = { id: id as KeyId, orgId };
    const key = isUuid(id) ? await tx.manager.findOneBy(ApiKeyEntity, place) : null;
    if (!key) return false;
    await tx.manager.update(ApiKeyEntity, place, { revokedAt: new Date(systemClock.now()) });
    this.notices.tell(tx, 'credentials.changed', { orgId, caller: callerOf(holderOf(key)) });
    return true;
  }
}
