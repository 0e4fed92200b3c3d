import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { queryIn, type Tx } from '../../platform/database/tx.js';

/** A row of `audit_subject_keys`. */
export interface SubjectKeyRow {
  readonly id: string;
  readonly sealed: string;
}

/** SQL for the rows of keys, for readers with a connection of their own. */
export const keysById = `
  select id, sealed
  from audit_subject_keys
  where org_id = :org and id = any(:ids::uuid[])`;

const newestKey = `
  select id, sealed
  from audit_subject_keys
  where org_id = :org and subject = :subject
  order by created_at desc, id desc
  limit 1`;

const insertKey = `
  insert into audit_subject_keys (id, org_id, subject, sealed)
  values (:id, :org, :subject, :sealed)`;

/** Stores the keys that seal the personal facts of audit events. */
@Injectable()
export class SubjectKeyStore {
  constructor(private readonly pg: Pg) {}

  async newest(org: OrgId, subject: string, tx?: Tx): Promise<SubjectKeyRow | undefined> {
    const params = { org, subject };
    const [row] = tx
      ? await queryIn<SubjectKeyRow[]>(tx, newestKey, params)
      : await this.pg.rows<SubjectKeyRow>('audit-subject-key', newestKey, params);
    return row;
  }

  async insert(org: OrgId, subject: string, { id, sealed }: SubjectKeyRow, tx?: Tx): Promise<void> {
    const params = { id, org, subject, sealed };
    if (tx) await queryIn(tx, insertKey, params);
    else await this.pg.rows('audit-subject-key-add', insertKey, params);
  }

  /** Returns the keys with these ids. Those that were erased are missing. */
  findByIds(org: OrgId, ids: readonly string[]): Promise<SubjectKeyRow[]> {
    return this.pg.rows<SubjectKeyRow>('audit-subject-keys', keysById, { org, ids });
  }

  /** Deletes all keys of a subject and returns their ids. */
  async erase(tx: Tx, org: OrgId, subject: string): Promise<string[]> {
    const [rows] = await queryIn<[{ id: string }[], number]>(
      tx,
      'delete from audit_subject_keys where org_id = :org and subject = :subject returning id',
      { org, subject },
    );
    return rows.map(({ id }) => id);
  }
}
