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
  for (const doubt of report.doubts) note(doubt);
  if (report.unreadable > 0) note(`${report.unreadable} lines of the anchor are not checkpoints`);
  const failure = failureOf(report);
  if (failure) throw failure;
}

async function reportOfDatabase(env: Env, { org, against, jwks }: AuditOptions): Promise<AuditReport> {
  const trusted = jwks === undefined ? [] : readJwks(jwks);
  return withDatabase(env, async (dataSource, settings) => {
    const inspection = AuditInspectionService.open(dataSource, settings, trusted);
    const only = org === undefined ? undefined : await inspection.findOrg(org);
    if (org !== undefined && only === undefined) throw new CommandError(`there is no org "${org}"`);
    return inspection.report(only, against === undefined ? undefined : readLines(against));
  });
}

/** Verifies an export. It reads no setting and opens no connection. */
async function reportOfExport(file: string, { org, against, jwks }: AuditOptions): Promise<AuditReport> {
  if (org !== undefined) throw new CommandError('--org is for the database; an export has one org');
  const trusted = jwks === undefined ? undefined : readJwks(jwks);
  if (!trusted) note('the public keys are those of the export; --jwks FILE trusts only keys that you stored before');
  const anchor = against === undefined ? undefined : readLines(against);
  return AuditInspectionService.reportOfExport(file, trusted, anchor).catch((error: unknown) => {
    throw error instanceof Error && 'code' in error && 'syscall' in error
      ? unreadable('the export', file, error)
      : error;
  });
}

const head = ['ORG', 'VERDICT', 'EVENTS', 'CHECKPOINT', 'ANCHORED', 'BROKEN AT', 'REASON'];

function cellsOf({ slug, orgId, verdict, eventCount, lastCheckpoint, ...more }: OrgReport): string[] {
  const { anchor, brokenAt, reason = '' } = more;
  const anchored = anchor ? `${anchor.checked} up to ${anchor.lastNumber} of ${anchor.lastAt}` : '-';
  const numbers = [eventCount, lastCheckpoint, anchored, brokenAt].map((cell) => String(cell ?? '-'));
  return [slug ?? orgId, verdict, ...numbers, reason];
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

function unreadable(option: string, file: string, error: unknown): CommandError {
  const { code = 'its content is not valid' } = error as NodeJS.ErrnoException;
  return new CommandError(`${option} ${file} cannot be read: ${code}`);
}
