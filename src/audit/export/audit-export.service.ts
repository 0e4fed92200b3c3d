import type { Readable } from 'node:stream';
import { Injectable } from '@nestjs/common';
import type { CallContext, OrgRef } from '../../kernel/call-context.js';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { ExportStream } from '../../platform/http/export-stream.js';
import { SigningKeys, type Signer } from '../../platform/secrets/signing-keys.js';
import { AuditCheckpoints } from '../audit-checkpoints.js';
import { AuditKeysService } from '../audit-keys.service.js';
import { AuditSealer } from '../audit.sealer.js';
import { AuditExportStore, type AuditSnapshot } from './audit-export.store.js';
import { endBytes, exportLine, type ExportHeader, type ExportLine } from './export-lines.js';

/** How often an export signs the chain, when erasures commit in the meantime. */
const mostRounds = 5;

/** Exports the audit of an org, so that `rialto audit verify FILE` verifies it without this deployment (RE-86). */
@Injectable()
export class AuditExportService {
  private readonly exports = new ExportStream();

  constructor(
    private readonly acts: AdminActs,
    private readonly sealer: AuditSealer,
    private readonly checkpoints: AuditCheckpoints,
    private readonly keys: AuditKeysService,
    private readonly signing: SigningKeys,
    private readonly store: AuditExportStore,
  ) {}

  /**
   * Exports the caller's org as JSON lines (`ExportLine`), as of one moment. The export ends at a checkpoint that
   * covers all events before the request, and the request itself. Throws `denied`, and `unavailable` while this
   * process runs another export of an audit. The stream fails with `unavailable` while erasures do not end.
   */
  async export(ctx: CallContext): Promise<Readable> {
    await this.acts.write(ctx, 'audit.export', {}, () => Promise.resolve());
    await this.signAll(ctx.org.id);
    const signer = await this.signing.current();
    const header = await this.headerOf(ctx.org);
    return this.exports.open(this.signedLines(header, ctx.org.id, signer));
  }

  private async signAll(org: OrgId): Promise<void> {
    await this.sealer.sealOrg(org, true);
    await this.checkpoints.signHead(org);
  }

  /**
   * An erasure that commits between the signing and the snapshot has deleted its keys there, but its event would be
   * left out. Then the chain is signed again, so that the export has the event.
   */
  private async *signedLines(header: ExportHeader, org: OrgId, signer: Signer): AsyncGenerator<string> {
    for (let round = 1; round <= mostRounds; round++) {
      if (round > 1) await this.signAll(org);
      let isSigned = false;
      yield* this.store.inSnapshot(org, async function* (snapshot) {
        isSigned = await snapshot.signsErasures();
        if (isSigned) yield* linesOf(header, snapshot, signer);
      });
      if (isSigned) return;
    }
    throw new RialtoError('unavailable', { message: 'too many erasures run at the same time', hint: 'try again' });
  }

  private async headerOf({ id, slug }: OrgRef): Promise<ExportHeader> {
    const keys = await this.keys.publicKeys(id);
    const at = new Date(systemClock.now()).toISOString();
    return { version: 1, orgId: id, slug, at, keys: keys as unknown as ExportHeader['keys'] };
  }
}

/** Merges events and checkpoints. Events after the last checkpoint are left out, because nothing signs them yet. */
async function* linesOf(header: ExportHeader, snapshot: AuditSnapshot, signer: Signer): AsyncGenerator<string> {
  let [lines, sequence, number] = [0, 0, 0];
  const line = (made: ExportLine): string => {
    lines++;
    return exportLine(made);
  };
  yield line({ kind: 'audit', data: header });
  const links = snapshot.events();
  let next = await links.next();
  for await (const { checkpoint, token } of snapshot.checkpoints()) {
    for (; !next.done && next.value.sequence <= checkpoint.sequence; next = await links.next()) {
      sequence = next.value.sequence;
      yield line({ kind: 'event', data: next.value as Extract<ExportLine, { kind: 'event' }>['data'] });
    }
    number = checkpoint.number;
    const timestamp = token?.toString('base64');
    yield line({ kind: 'checkpoint', data: checkpoint, ...(timestamp !== undefined && { timestamp }) });
  }
  const { orgId, slug, at } = header;
  const end = { orgId, slug, at, sequence, number };
  yield exportLine({ kind: 'end', lines, data: { ...end, kid: signer.kid, signature: signer.sign(endBytes(end)) } });
}
