import { generateKeyPairSync, sign } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PublicJwk } from '../../platform/secrets/signing-keys.js';
import { AuditInspectionService } from '../audit-inspection.service.js';
import { genesisHash, linksOf } from '../chain.js';
import { checkpointHash, signed, type AnchoredCheckpoint } from '../checkpoint.js';
import { endBytes } from './export-lines.js';

const orgId = '0197c2a0-0000-7000-8000-000000000001';
const { privateKey, publicKey } = generateKeyPairSync('ed25519');
const kid = 'k1';
const jwk = { ...publicKey.export({ format: 'jwk' }), kid } as PublicJwk;
const signer = { kid, sign: (data: Uint8Array) => sign(null, data, privateKey).toString('base64url') };
const timeOf = (sequence: number): string => new Date(Date.UTC(2026, 0, 1, 0, sequence)).toISOString();

interface Line {
  kind: string;
  data?: any;
  lines?: number;
}

/** Returns the lines of events with their hashes. */
const eventLines = (events: readonly { id: string }[]): Line[] =>
  linksOf(events.map((event) => ({ id: event.id, event }))).map(({ sequence, prevHash, hash }, index) => ({
    kind: 'event',
    data: { sequence, prevHash, hash, event: events[index] },
  }));

const events = Array.from({ length: 30 }, (_, index) => ({ id: `e${index + 1}`, orgId, outcome: 'completed' }));
const chain = eventLines(events);

/** Checkpoints after every fifth event. */
const checkpoints: AnchoredCheckpoint[] = [];
for (let sequence = 5; sequence <= 30; sequence += 5) {
  const last = checkpoints.at(-1);
  const place = { orgId, number: checkpoints.length + 1, prevHash: last ? checkpointHash(last) : genesisHash };
  const statement = { ...place, sequence, hash: chain[sequence - 1]!.data.hash as string, at: timeOf(sequence) };
  const { signature } = signed(statement, signer);
  checkpoints.push({ ...statement, kid, signature });
}

/** Returns the signed end of an export. */
function endOf(number: number, more: object = {}) {
  const { sequence } = checkpoints[number - 1]!;
  const end = { orgId, slug: 'acme', at: timeOf(sequence + 1), sequence, number, ...more };
  return { ...end, kid, signature: signer.sign(endBytes(end)) };
}

/** Returns the lines of an export that ends at a checkpoint. */
function exportOf(number: number, links: readonly Line[] = chain): Line[] {
  const { sequence } = checkpoints[number - 1]!;
  const at = timeOf(sequence + 1);
  const lines: Line[] = [{ kind: 'audit', data: { version: 1, orgId, slug: 'acme', at, keys: [jwk] } }];
  for (const line of links.slice(0, sequence)) {
    lines.push(line);
    const checkpoint = checkpoints.find((one) => one.sequence === line.data.sequence);
    if (checkpoint) lines.push({ kind: 'checkpoint', data: checkpoint });
  }
  return [...lines, { kind: 'end', lines: lines.length, data: endOf(number) }];
}

async function* linesOf(lines: readonly object[]): AsyncGenerator<string> {
  for (const line of lines) yield JSON.stringify(line);
}

describe('an export that is verified', () => {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-exported-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const inspect = async (lines: readonly (Line | string)[], anchor?: readonly AnchoredCheckpoint[]) => {
    const file = join(folder, 'audit.jsonl');
    writeFileSync(file, lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''));
    const report = await AuditInspectionService.reportOfExport(file, [jwk], anchor && linesOf(anchor));
    return { report, org: report.orgs[0]! };
  };
  const edited = (sequence: number) => events.map((event) => (event.id === `e${sequence}` ? editOf(event) : event));
  const editOf = <Event extends object>(event: Event): Event => ({ ...event, outcome: 'denied' });

  it('is intact without a change', async () => {
    const { report, org } = await inspect(exportOf(6), checkpoints);
    expect([report.verdict, org.brokenAt, org.lastSequence, org.lastCheckpoint]).toEqual(['intact', null, 30, 6]);
  });

  describe('names the first event that no checkpoint confirms', () => {
    const changed = { verdict: 'changed', brokenAt: 11 };

    it.each([
      ['alone', undefined],
      ['with an anchor', checkpoints],
    ])('after an edit with new hashes: %s', async (_how, anchor) => {
      const { org } = await inspect(exportOf(6, eventLines(edited(13))), anchor);
      expect(org).toMatchObject({ ...changed, reason: 'event 15, or one before it, was changed' });
    });

    it('after an edit with new hashes in the checkpoints', async () => {
      const lines = exportOf(6, eventLines(edited(13)));
      const forged = lines.map((line, index) => {
        if (line.kind !== 'checkpoint') return line;
        return { ...line, data: { ...line.data, hash: lines[index - 1]!.data.hash } };
      });
      const { org } = await inspect(forged);
      expect(org).toMatchObject({ ...changed, reason: 'the checkpoint of event 15 was changed' });
    });

    it('after an edit with a new hash of that event alone', async () => {
      const forged = eventLines(edited(13));
      const { org } = await inspect(exportOf(6, [...forged.slice(0, 13), ...chain.slice(13)]));
      const reason = 'event 14, or one before it, was changed, removed or inserted';
      expect(org).toMatchObject({ ...changed, reason });
    });

    it('and the wrong event itself after an edit that leaves the hashes', async () => {
      const forged = chain.map((line) =>
        line.data.sequence === 13 ? { ...line, data: { ...line.data, event: editOf(line.data.event) } } : line,
      );
      const { org } = await inspect(exportOf(6, forged));
      expect(org).toMatchObject({ brokenAt: 13, reason: 'event 13 was changed, removed or inserted' });
    });

    it('and that of a wrong checkpoint when later ones confirm every event', async () => {
      const lines = exportOf(6).map((line) =>
        line.data?.number === 3 ? { ...line, data: { ...line.data, at: timeOf(1) } } : line,
      );
      expect((await inspect(lines)).org).toMatchObject({ brokenAt: 15, lastCheckpoint: 6 });
    });
  });

  describe('states up to which event it goes', () => {
    it('and an anchor that is newer does not contradict it', async () => {
      const { report, org } = await inspect(exportOf(4), checkpoints);
      expect([report.verdict, report.doubts, report.exported]).toEqual([
        'intact',
        [],
        { at: timeOf(21), sequence: 20 },
      ]);
      expect(org.anchor).toMatchObject({ checked: 4, newer: 2, lastNumber: 4, contradicted: 0, confirmedTo: 20 });
    });

    it('and an anchor that has only newer checkpoints confirms nothing', async () => {
      const { report } = await inspect(exportOf(4), checkpoints.slice(4));
      expect([report.verdict, report.doubts]).toEqual(['unverifiable', [expect.stringContaining('no checkpoint')]]);
    });

    it('so that an anchored checkpoint from before the export reveals a removed tail', async () => {
      const lines = exportOf(4);
      const late = { ...lines[0]!, data: { ...lines[0]!.data, at: timeOf(40) } };
      const end = { ...lines.at(-1)!, data: endOf(4, { at: timeOf(40) }) };
      const { org } = await inspect([late, ...lines.slice(1, -1), end], checkpoints);
      expect(org).toMatchObject({ verdict: 'changed', brokenAt: 21, anchor: { newer: 0, contradicted: 2 } });
      expect(org.reason).toContain('event 25 was removed (line 5 of the anchor)');
    });

    /** An export that was cut at checkpoint 4, with the number of lines that it has then. */
    const cut = exportOf(4).slice(0, -1);
    it.each([
      ['the signed end', endOf(6), 'the export ended at event 30 and ends at event 20', 21],
      ['an end for fewer events', { ...endOf(6), sequence: 20, number: 4 }, 'signed end of the export was changed', 21],
      ['the end of an older export', endOf(3), 'the export ended at event 15 and ends at event 20', 16],
    ])('so that a cut file with %s is changed', async (_what, data, reason, brokenAt) => {
      const { report, org } = await inspect([...cut, { kind: 'end', lines: cut.length, data }]);
      expect([report.verdict, org.brokenAt, org.reason]).toEqual([
        'changed',
        brokenAt,
        expect.stringContaining(reason),
      ]);
    });

    it('so that a file without a signed end is not intact', async () => {
      const lines = [...cut, { kind: 'end', lines: cut.length }];
      const doubt = 'no known key signs the end of the export: it may have had events after 20';
      const { report, org } = await inspect(lines);
      expect([report.verdict, report.doubts, org.reason, org.slug]).toEqual(['unverifiable', [doubt], doubt, null]);
      const foreign = [...cut, { kind: 'end', lines: cut.length, data: { ...endOf(4), kid: 'k2' } }];
      expect((await inspect(foreign)).report.doubts).toEqual([doubt]);
      const compared = await inspect(lines, checkpoints);
      expect([compared.report.verdict, compared.org.anchor?.newer]).toEqual(['unverifiable', 2]);
    });
  });

  describe('has nothing beside what is signed', () => {
    it.each(['slug', 'at'])('so that another %s in the header is a change', async (name) => {
      const [header, ...lines] = exportOf(6);
      const value = name === 'at' ? timeOf(50) : 'globex';
      const { org } = await inspect([{ ...header!, data: { ...header!.data, [name]: value } }, ...lines]);
      const reason = `the header has another ${name} than the signed end`;
      expect(org).toMatchObject({ verdict: 'changed', brokenAt: null, reason, slug: 'acme' });
    });

    const [line1, line2, ...others] = exportOf(6);
    const withMember = (line: Line | undefined, member: string): string =>
      JSON.stringify(line).replace('"data":{', `"data":{${member},`);
    it.each<[string, (Line | string)[], string]>([
      ['the header', [withMember(line1, '"x":1'), line2!, ...others], 'line 1 has an unknown member data.x'],
      ['a line', [line1!, { ...line2!, x: 1 } as Line, ...others], 'line 2 has an unknown member x'],
      ['an event line', [line1!, withMember(line2, '"x":1'), ...others], 'line 2 has an unknown member data.x'],
      [
        'an event twice',
        [line1!, JSON.stringify(line2).replace('"outcome"', String.raw`"\u006futcome":"x","outcome"`), ...others],
        'line 2 has two members with one name',
      ],
    ])('so that a member more in %s is refused', async (_what, lines, message) => {
      await expect(inspect(lines)).rejects.toThrow(message);
    });

    it.each<[string, number, (lines: Line[]) => void, string]>([
      ['a repeated event', 3, (lines) => lines.splice(4, 0, lines[3]!), 'line 5 has event 3 again, or not in order'],
      [
        'two events in another order',
        3,
        (lines) => lines.splice(3, 2, lines[4]!, lines[3]!),
        'line 5 has event 3 again, or not in order',
      ],
      ['a repeated checkpoint', 5, (lines) => lines.splice(7, 0, lines[6]!), 'line 8 has checkpoint 1 again'],
    ])('so that %s is a change at event %i', async (_what, brokenAt, change, reason) => {
      const lines = exportOf(6);
      change(lines);
      const { org } = await inspect(lines);
      expect([org.verdict, org.brokenAt, org.reason]).toEqual(['changed', brokenAt, expect.stringContaining(reason)]);
    });
  });
});
