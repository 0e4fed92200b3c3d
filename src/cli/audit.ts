import { X509Certificate } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { AuditInspectionService, type AuditReport, type OrgReport } from '../audit/audit-inspection.service.js';
import { Jwks } from '../audit/audit.types.js';
import type { PublicJwk } from '../platform/secrets/signing-keys.js';
import { CommandError, note, print, table, type Env } from './io.js';
import { withDatabase } from './operator.js';

export interface AuditOptions {
  readonly org?: string;
  readonly against?: string;
  readonly jwks?: string;
  readonly tsaCa?: string;
  readonly json?: boolean;
}

/** Exit code when the audit does not agree with its signed checkpoints. */
const changedCode = 2;

/**
 * Verifies the audit in the database, or an export of it, against an anchor when one is given. Exit code 2 when the
 * audit was changed; 1 when that cannot be decided, as for every failed command.
 */
export async function verifyAudit(env: Env, file: string | undefined, options: AuditOptions): Promise<void> {
  const { json } = options;
  const report = file === undefined ? await reportOfDatabase(env, options) : await reportOfExport(file, options);
  print(json ? JSON.stringify(report, null, 2) : table([head, ...report.orgs.map(cellsOf)]));
  for (const text of notesOf(report)) note(text);
  const failure = failureOf(report);
  if (failure) throw failure;
}

async function reportOfDatabase(env: Env, { org, against, jwks, tsaCa }: AuditOptions): Promise<AuditReport> {
  const trusted = jwks === undefined ? [] : readJwks(jwks);
  const authorities = tsaCa === undefined ? undefined : readCertificates(tsaCa);
  return withDatabase(env, async (dataSource, settings) => {
    const inspection = AuditInspectionService.open(dataSource, settings, trusted);
    const only = org === undefined ? undefined : await inspection.findOrg(org);
    if (org !== undefined && only === undefined) throw new CommandError(`there is no org "${org}"`);
    return inspection.report(only, against === undefined ? undefined : readLines(against), authorities);
  });
}

/** Verifies an export. It reads no setting and opens no connection. */
async function reportOfExport(file: string, { org, against, jwks, tsaCa }: AuditOptions): Promise<AuditReport> {
  if (org !== undefined) throw new CommandError('--org is for the database; an export has one org');
  const trusted = jwks === undefined ? undefined : readJwks(jwks);
  if (!trusted) note('the public keys are those of the export; --jwks FILE trusts only keys that you stored before');
  const anchor = against === undefined ? undefined : readLines(against);
  const authorities = tsaCa === undefined ? undefined : readCertificates(tsaCa);
  return AuditInspectionService.reportOfExport(file, trusted, anchor, authorities).catch((error: unknown) => {
    throw error instanceof Error && 'code' in error && 'syscall' in error
      ? unreadable('the export', file, error)
      : error;
  });
}

const head = ['ORG', 'VERDICT', 'EVENTS', 'CHECKPOINT', 'ANCHORED', 'STAMPED', 'BROKEN AT', 'REASON'];

function cellsOf({ slug, orgId, verdict, eventCount, lastCheckpoint, ...more }: OrgReport): string[] {
  const { anchor, timestamps, brokenAt, reason = '' } = more;
  const anchored = anchor ? `${anchor.checked} up to ${anchor.lastNumber} of ${anchor.lastAt}` : '-';
  const { checked, lastNumber, lastAt = null } = timestamps ?? {};
  const stamped = lastAt && `${checked} up to ${lastNumber} at ${lastAt}`;
  const numbers = [eventCount, lastCheckpoint, anchored, stamped, brokenAt].map((cell) => String(cell ?? '-'));
  return [slug ?? orgId, verdict, ...numbers, reason];
}

/** Returns what the table does not show. */
function notesOf({ doubts, orgs, exported, unreadable }: AuditReport): string[] {
  const notes = [...doubts];
  if (exported) notes.push(`the export was made at ${exported.at} and ends at event ${exported.sequence}`);
  const newer = orgs.reduce((sum, { anchor }) => sum + (anchor?.newer ?? 0), 0);
  if (newer > 0) notes.push(`the anchor is newer than the export: ${newer} checkpoints are not covered`);
  if (orgs.some(({ timestamps }) => timestamps?.isAuthorityChecked === false))
    notes.push('the timestamps may be of any authority; --tsa-ca FILE names the certificates of those that you trust');
  if (unreadable > 0) notes.push(`${unreadable} lines of the anchor are not checkpoints`);
  return notes;
}

function failureOf({ verdict, orgs }: AuditReport): CommandError | undefined {
  const named = orgs.filter((org) => org.verdict === verdict).map(({ slug, orgId }) => slug ?? orgId);
  if (verdict === 'changed') return new CommandError(`the audit was changed: ${named.join(', ')}`, changedCode);
  if (verdict === 'unverifiable')
    return new CommandError(`the audit cannot be verified${named.length > 0 ? `: ${named.join(', ')}` : ''}`);
  return undefined;
}

async function* readLines(file: string): AsyncGenerator<string> {
  const input = file === '-' ? process.stdin : createReadStream(file);
  try {
    yield* createInterface({ input, crlfDelay: Infinity });
  } catch (error) {
    throw unreadable('--against', file, error);
  }
}

function readJwks(file: string): PublicJwk[] {
  try {
    return Jwks.parse(JSON.parse(readFileSync(file, 'utf8'))).keys;
  } catch (error) {
    throw unreadable('--jwks', file, error);
  }
}

/** Reads the certificates of a PEM file. */
function readCertificates(file: string): X509Certificate[] {
  try {
    const blocks = readFileSync(file, 'utf8').match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g);
    if (!blocks) throw new Error('the file has no certificate');
    return blocks.map((pem) => new X509Certificate(pem));
  } catch (error) {
    throw unreadable('--tsa-ca', file, error);
  }
}

function unreadable(option: string, file: string, error: unknown): CommandError {
  const { code = 'its content is not valid' } = error as NodeJS.ErrnoException;
  return new CommandError(`${option} ${file} cannot be read: ${code}`);
}
