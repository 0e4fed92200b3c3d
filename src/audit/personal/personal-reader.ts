import { Injectable } from '@nestjs/common';
import type { PoolClient } from 'pg';
import { isUuid, type OrgId } from '../../kernel/ids.js';
import { positional } from '../../platform/database/sql.js';
import { openFacts, sealedFactsOf, type OpenedFacts } from './personal-facts.js';
import { keysById, SubjectKeyStore, type SubjectKeyRow } from './subject-key.store.js';
import { SubjectKeys } from './subject-keys.js';

/** The personal facts of an event, as far as they can be read. */
export interface ReadFacts {
  readonly opened: readonly OpenedFacts[];
  /** True when the key of some facts was erased. */
  readonly isErased: boolean;
}

/** Opens the personal facts of events. It reads the keys each time, so an erased key opens nothing at once. */
@Injectable()
export class PersonalReader {
  constructor(
    private readonly store: SubjectKeyStore,
    private readonly keys: SubjectKeys,
  ) {}

  /** Returns the facts of each event, in the order of the events. `snapshot` is a connection that reads the keys. */
  async read(org: OrgId, events: readonly unknown[], snapshot?: PoolClient): Promise<ReadFacts[]> {
    const sealed = events.map(sealedFactsOf);
    const ids = [...new Set(sealed.flat().map(({ key }) => key))].filter(isUuid);
    const rows = ids.length === 0 ? [] : await this.rowsOf(org, ids, snapshot);
    const stored = new Set(rows.map(({ id }) => id));
    const keys = this.keys.open(org, rows);
    return sealed.map((all, index) => ({
      opened: all.flatMap((one) => {
        const key = keys.get(one.key);
        const place = { orgId: org, id: String((events[index] as { id?: unknown }).id) };
        return (key && openFacts(place, key, one)) ?? [];
      }),
      isErased: all.some(({ key }) => !stored.has(key)),
    }));
  }

  private async rowsOf(org: OrgId, ids: readonly string[], snapshot?: PoolClient): Promise<SubjectKeyRow[]> {
    if (!snapshot) return this.store.findByIds(org, ids);
    return (await snapshot.query<SubjectKeyRow>(positional(keysById, { org, ids }))).rows;
  }
}
