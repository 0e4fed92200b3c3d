import { open, type FileHandle } from 'node:fs/promises';
import { RialtoError } from '../../kernel/errors.js';
import type { OrgId } from '../../kernel/ids.js';
import type { SignatureCheck } from '../../platform/secrets/signing-keys.js';
import type { CheckpointCursor, Cut, StoredCheckpoint } from '../audit-checkpoint.store.js';
import type { ComparedCheckpoints } from '../anchors/anchor-comparison.js';
import type { ChainLink } from '../chain.js';
import type { ChainSource, CheckpointSource } from '../chain-walk.js';
import type { AnchoredCheckpoint } from '../checkpoint.js';
import { erasureIn, type ErasureRecord } from '../personal/erasure-record.js';
import { sealedFactsOf } from '../personal/personal-facts.js';
import type { StampedCheckpoint } from '../timestamps/audit-timestamp.store.js';
import type { TimestampSource } from '../timestamps/timestamp-walk.js';
import { endBytes, ExportLine, hasRepeatedMember, type ExportEnd, type ExportHeader } from './export-lines.js';
import { indexedLines, LineIndex } from './line-index.js';

/** A contradiction in the file itself. `brokenAt` is null for one in the header. */
export interface FileFault {
  readonly brokenAt: number | null;
  readonly reason: string;
}

/**
 * Reads an export as the stores read the database, so that the same code verifies both. Memory holds the position of
 * each line, not its content.
 */
export class ExportedAudit implements ChainSource, CheckpointSource, ComparedCheckpoints, TimestampSource {
  /** Reasons why the file proves less than it should. */
  readonly doubts: string[] = [];
  private readonly events: LineIndex;
  private readonly checkpoints: LineIndex;
  private readonly erased: ErasureRecord[] = [];
  private cut?: Cut;
  /** Last event that a checkpoint covers. */
  private signedTo = 0;
  private readHeader?: ExportHeader;
  private ended = false;
  private stated?: ExportEnd;
  private misplaced?: FileFault;
  private trustedEnd?: ExportEnd;

  private constructor(private readonly file: FileHandle) {
    this.events = new LineIndex(file);
    this.checkpoints = new LineIndex(file);
  }

  /**
   * Opens a file and reads it once. Throws `unprocessable` for a file that is not an export, and
   * the error of the file system.
   */
  static async open(path: string): Promise<ExportedAudit> {
    const exported = new ExportedAudit(await open(path, 'r'));
    try {
      await exported.readAll();
    } catch (error) {
      await exported.close();
      throw error;
    }
    return exported;
  }

  close(): Promise<void> {
    return this.file.close();
  }

  get header(): ExportHeader {
    return this.readHeader!;
  }

  /** The signed end, after `verifyFile` found its signature right. */
  get signedEnd(): ExportEnd | undefined {
    return this.trustedEnd;
  }

  /** The end that an anchor is compared with. A file without a signed end is never intact. */
  get end(): { number: number; at: string } {
    return { number: this.checkpoints.lastKey, at: this.header.at };
  }

  /**
   * Checks that the lines are in order, and that the file is as long as its signed end states. Returns the first
   * contradiction, and adds the doubt that nothing proves the end.
   */
  async verifyFile(check: SignatureCheck): Promise<FileFault | undefined> {
    return this.misplaced ?? (await this.endFault(check));
  }

  private async endFault(check: SignatureCheck): Promise<FileFault | undefined> {
    if (!this.ended) return undefined;
    const { stated: end, header } = this;
    const [sequence, number] = [this.events.lastKey, this.checkpoints.lastKey];
    const answer = end ? await check(endBytes(end), end.kid, end.signature) : 'unknown';
    if (answer === 'invalid') return { brokenAt: sequence + 1, reason: 'the signed end of the export was changed' };
    if (!end || answer === 'unknown') {
      this.doubts.push(`no known key signs the end of the export: it may have had events after ${sequence}`);
      return undefined;
    }
    this.trustedEnd = end;
    if (sequence !== end.sequence)
      return {
        brokenAt: Math.min(sequence, end.sequence) + 1,
        reason: `the export ended at event ${end.sequence} and ends at event ${sequence}`,
      };
    if (number !== end.number)
      return {
        brokenAt: sequence + 1,
        reason: `the export ended at checkpoint ${end.number} and ends at checkpoint ${number}`,
      };
    const wrong = (['orgId', 'slug', 'at'] as const).find((name) => header[name] !== end[name]);
    return wrong && { brokenAt: null, reason: `the header has another ${wrong} than the signed end` };
  }

  countUnsealed(): Promise<{ unsealed: number; orphans: number }> {
    return Promise.resolve({ unsealed: 0, orphans: 0 });
  }

  async linksAfter(_org: OrgId, sequence: number, limit: number): Promise<ChainLink[]> {
    const lines = await this.events.after(sequence, limit);
    return lines.map((text) => this.linkOf(text));
  }

  /** The keys of facts that the export does not show. */
  lostKeys(_org: OrgId, links: readonly ChainLink[]): Promise<Map<string, number>> {
    const lost = new Map<string, number>();
    for (const { event, sequence, opened = [] } of links)
      for (const { key } of sealedFactsOf(event))
        if (!lost.has(key) && !opened.some((facts) => facts.key === key)) lost.set(key, sequence);
    return Promise.resolve(lost);
  }

  erasures(): Promise<ErasureRecord[]> {
    return Promise.resolve(this.erased);
  }

  newestCut(): Promise<Cut | undefined> {
    return Promise.resolve(this.cut);
  }

  async findPage(_org: OrgId, after: CheckpointCursor, limit: number): Promise<StoredCheckpoint[]> {
    const lines = await this.checkpoints.after(after.number, limit);
    return Promise.all(
      lines.map(async (text) => {
        const numbered = checkpointOf(text);
        const { orgId, sequence, hash, at, cut, kid } = numbered;
        const chainHash = await this.hashOf(sequence);
        const plain = { orgId, sequence, hash, at, ...(cut && { cut }) };
        return { plain, kid, numbered, ...(chainHash !== undefined && { chainHash }) };
      }),
    );
  }

  async findNumbered(places: readonly Pick<AnchoredCheckpoint, 'orgId' | 'number'>[]): Promise<AnchoredCheckpoint[]> {
    const lines = await Promise.all(places.map(({ number }) => this.checkpoints.at(number)));
    return lines.filter((text) => text !== undefined).map(checkpointOf);
  }

  async chainHashes(
    places: readonly Pick<AnchoredCheckpoint, 'orgId' | 'sequence'>[],
  ): Promise<{ orgId: string; sequence: number; hash: string }[]> {
    const found = await Promise.all(
      places.map(async ({ orgId, sequence }) => ({ orgId, sequence, hash: await this.hashOf(sequence) })),
    );
    return found.flatMap(({ hash, ...place }) => (hash === undefined ? [] : [{ ...place, hash }]));
  }

  async stampedAfter(_org: OrgId, number: number, limit: number): Promise<StampedCheckpoint[]> {
    const lines = await this.checkpoints.after(number, limit);
    return lines.map((text) => {
      const { timestamp } = JSON.parse(text) as { timestamp?: string };
      return { checkpoint: checkpointOf(text), ...(timestamp && { token: Buffer.from(timestamp, 'base64') }) };
    });
  }

  /** A timestamp is a member of its checkpoint here. */
  firstWithoutCheckpoint(): Promise<undefined> {
    return Promise.resolve(undefined);
  }

  private async hashOf(sequence: number): Promise<string | undefined> {
    const text = await this.events.at(sequence);
    return text === undefined ? undefined : this.linkOf(text).hash;
  }

  /** An event of another org counts as missing, as in the database. */
  private linkOf(text: string): ChainLink {
    const { data } = JSON.parse(text) as { data: ChainLink };
    const isOwn = (data.event as { orgId?: unknown } | null)?.orgId === this.header.orgId;
    return { ...data, event: isOwn ? data.event : null };
  }

  private async readAll(): Promise<void> {
    let count = 0;
    for await (const { text, start, length } of indexedLines(this.file)) {
      count++;
      if (this.ended) throw refused(`line ${count} follows the end of the export`);
      this.take(parsed(text, count), { count, start, length });
    }
    if (!this.readHeader) throw refused('it is empty');
    if (!this.ended) this.doubts.push('the export is incomplete: its last line is missing');
    if (this.signedTo < this.events.lastKey) this.doubts.push(`no checkpoint signs the events after ${this.signedTo}`);
    if (this.checkpoints.lastKey === 0) this.doubts.push('the export has no checkpoint, so nothing is signed');
  }

  private take(line: ExportLine, { count, start, length }: { count: number; start: number; length: number }): void {
    if ((line.kind === 'audit') !== (count === 1))
      throw refused(`line ${count} is ${line.kind === 'audit' ? 'a second' : 'not the'} header`);
    if (line.kind === 'audit') this.readHeader = line.data;
    else if (line.kind === 'event') {
      const { sequence, event } = line.data;
      const erasure = erasureIn(event);
      if (erasure?.orgId === this.header.orgId) this.erased.push(erasure);
      if (!this.events.add(sequence, { start, length })) this.misplace(sequence, `line ${count} has event ${sequence}`);
    } else if (line.kind === 'checkpoint') {
      const { orgId, number, sequence, hash, cut, removedTo = 0 } = line.data;
      if (orgId !== this.header.orgId) throw refused(`line ${count} has a checkpoint of another org`);
      if (!this.checkpoints.add(number, { start, length }))
        this.misplace(sequence, `line ${count} has checkpoint ${number}`);
      if (cut && sequence > (this.cut?.sequence ?? 0)) this.cut = { sequence, hash, removedTo };
      this.signedTo = Math.max(this.signedTo, sequence);
    } else {
      this.ended = true;
      this.stated = line.data;
      if (line.lines !== count - 1) this.doubts.push(`the export had ${line.lines} lines and has ${count - 1}`);
    }
  }

  private misplace(brokenAt: number, line: string): void {
    this.misplaced ??= { brokenAt, reason: `${line} again, or not in order` };
  }
}

function parsed(text: string, count: number): ExportLine {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw refused(`line ${count} is not JSON`);
  }
  if (hasRepeatedMember(text, json)) throw refused(`line ${count} has two members with one name`);
  const { data, error } = ExportLine.safeParse(json);
  if (data) return data;
  const issue = error.issues[0];
  if (issue?.code === 'unrecognized_keys')
    throw refused(`line ${count} has an unknown member ${[...issue.path, issue.keys[0]].join('.')}`);
  throw refused(`line ${count} has a wrong ${issue?.path.join('.') || 'form'}`);
}

function checkpointOf(text: string): AnchoredCheckpoint {
  return (JSON.parse(text) as { data: AnchoredCheckpoint }).data;
}

function refused(message: string): RialtoError {
  return new RialtoError('unprocessable', { message: `the file is not an export of an audit: ${message}` });
}
