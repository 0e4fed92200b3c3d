import { createSecretKey, randomBytes } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { systemClock } from '../../kernel/clock.js';
import { newId, type OrgId } from '../../kernel/ids.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import type { Tx } from '../../platform/database/tx.js';
import { Vault, type SealedAt } from '../../platform/secrets/vault.js';
import type { SubjectKey } from './personal-facts.js';
import { SubjectKeyStore, type SubjectKeyRow } from './subject-key.store.js';

const maxKnown = 20_000;
/** How long a process seals with a key before it reads it again, in case the notice of an erasure was lost. */
const knownForMs = 300_000;

/** The keys of some subjects. */
export type KeyRing = ReadonlyMap<string, SubjectKey>;

/**
 * Provides the keys that seal personal facts, and creates a key for each new subject. Two processes may create one
 * each; an erasure deletes both.
 */
@Injectable()
export class SubjectKeys {
  private readonly known = new BoundedMap<string, { readonly key: SubjectKey; readonly until: number }>(maxKnown);
  private readonly loading = new Map<string, Promise<SubjectKey>>();
  /** Number of erasures. A key that was read before an erasure is not remembered after it. */
  private erasures = 0;

  constructor(
    private readonly store: SubjectKeyStore,
    private readonly vault: Vault,
  ) {}

  /** Returns the keys at once when this process knows all of them, so that a hot path waits for nothing. */
  ringOf(org: OrgId, subjects: readonly string[]): KeyRing | Promise<KeyRing> {
    const now = systemClock.elapsed();
    const ring = new Map<string, SubjectKey>();
    for (const subject of subjects) {
      const known = this.known.use(placeOf(org, subject));
      if (!known || known.until < now) return this.loadRing(org, subjects);
      ring.set(subject, known.key);
    }
    return ring;
  }

  /** Returns the keys for a row in a transaction. A key that it creates there is not remembered: it may roll back. */
  async ringIn(tx: Tx, org: OrgId, subjects: readonly string[]): Promise<KeyRing> {
    const ring = new Map<string, SubjectKey>();
    for (const subject of subjects) ring.set(subject, await this.findOrCreate(org, subject, tx));
    return ring;
  }

  /** Opens stored keys. Keys that this process cannot open are left out. */
  open(org: OrgId, rows: readonly SubjectKeyRow[]): Map<string, SubjectKey> {
    const keys = rows.flatMap((row) => this.opened(org, row) ?? []);
    return new Map(keys.map((key) => [key.id, key]));
  }

  @OnNotice('audit.erased')
  forget({ orgId }: Notice<'audit.erased'>): void {
    this.erasures++;
    for (const place of this.known.keys()) if (place.startsWith(`${orgId} `)) this.known.delete(place);
  }

  private async loadRing(org: OrgId, subjects: readonly string[]): Promise<KeyRing> {
    const keys = await Promise.all(subjects.map(async (subject) => [subject, await this.load(org, subject)] as const));
    return new Map(keys);
  }

  private load(org: OrgId, subject: string): Promise<SubjectKey> {
    const place = placeOf(org, subject);
    const running = this.loading.get(place);
    if (running) return running;
    const { erasures } = this;
    const load = this.findOrCreate(org, subject)
      .then((key) => {
        if (erasures === this.erasures) this.known.set(place, { key, until: systemClock.elapsed() + knownForMs });
        return key;
      })
      .finally(() => this.loading.delete(place));
    this.loading.set(place, load);
    return load;
  }

  /** A key that only another encryption key opens is replaced by a new one, so that every act can be recorded. */
  private async findOrCreate(org: OrgId, subject: string, tx?: Tx): Promise<SubjectKey> {
    const row = await this.store.newest(org, subject, tx);
    const found = row && this.opened(org, row);
    if (found) return found;
    const bytes = randomBytes(32);
    const key: SubjectKey = { id: newId(), secret: createSecretKey(bytes) };
    const sealed = this.vault.seal(bytes.toString('base64url'), sealedAt(org, key.id));
    await this.store.insert(org, subject, { id: key.id, sealed }, tx);
    return key;
  }

  private opened(org: OrgId, { id, sealed }: SubjectKeyRow): SubjectKey | undefined {
    try {
      return { id, secret: createSecretKey(this.vault.open(sealed, sealedAt(org, id)).reveal(), 'base64url') };
    } catch {
      return undefined;
    }
  }
}

function placeOf(org: OrgId, subject: string): string {
  return `${org} ${subject}`;
}

function sealedAt(org: OrgId, id: string): SealedAt {
  return { table: 'audit_subject_keys', row: id, org };
}
