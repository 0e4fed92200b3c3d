import { Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { Pg } from '../../platform/database/pg.js';
import { AuditEventStore, sealedKeysOf } from '../audit-event.store.js';
import type { ChainLink } from '../chain.js';
import { PersonalReader } from './personal-reader.js';

/**
 * Reads audit events in a process that can open keys. There, a key that was exchanged is noticed too: a change of the
 * row of a key makes facts unreadable without an erasure.
 */
@Injectable()
export class OpenedEvents extends AuditEventStore {
  constructor(
    pg: Pg,
    private readonly personal: PersonalReader,
  ) {
    super(pg);
  }

  /** Returns the keys that do not open the facts that they sealed, each with the first event that has it. */
  override async lostKeys(org: OrgId, links: readonly ChainLink[]): Promise<Map<string, number>> {
    const used = sealedKeysOf(links);
    const first = new Set(used.values());
    const events = links.filter(({ sequence }) => first.has(sequence)).map(({ event }) => event);
    const read = await this.personal.read(org, events);
    for (const { key } of read.flatMap(({ opened }) => opened)) used.delete(key);
    return used;
  }
}
