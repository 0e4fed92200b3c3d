import { createReadStream, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { z } from 'zod';
import { AuditInspectionService, type AuditReport, type OrgReport } from '../audit/audit-inspection.service.js';
import type { PublicJwk } from '../platform/secrets/signing-keys.js';
import { CommandError, note, print, table, type Env } from './io.js';
import { withDatabase } from './operator.js';

export interface AuditOptions {
  readonly org?: string;
  readonly against?: string;
  readonly jwks?: string;
  readonly json?: boolean;
}

const Jwks = z.object({ keys: z.array(z.looseObject({ kid: z.string(), kty: z.literal('OKP'), x: z.string() })) });
/** Exit code when the audit does not agree with its signed checkpoints. */
const changedCode = 2;

/**
 * Verifies the audit, against an anchor when one is given. Exit code 2 when the audit was changed; 1 when that cannot
 * be decided, as for every failed command.
 */
export async function verifyAudit(env: Env, { org, against, jwks, json }: AuditOptions): Promise<void> {
  const trusted = jwks === undefined ? [] : readJwks(jwks);
  const report = await withDatabase(env, async (dataSource, settings) => {
    const inspection = AuditInspectionService.open(dataSource, settings, trusted);
    const only = org === undefined ? undefined : await inspection.findOrg(org);
    if (org !== undefined && only === undefined) throw new CommandError(`there is no org "${org}"`);
    return inspection.report(only, against === undefined ? undefined : readLines(against));
  });
  print(json ? JSON.stringify(report, null, 2) : table([head, ...report.orgs.map(cellsOf)]));
  for (const doubt of report.doubts) note(doubt);
  if (report.unreadable > 0) note(`${report.unreadable} lines of the anchor are not checkpoints`);
  const failure = failureOf(report);
  if (failure) throw failure;
}

const head = ['ORG', 'VERDICT', 'EVENTS', 'CHECKPOINT', 'ANCHORED', 'REASON'];

function cellsOf({ slug, orgId, verdict, eventCount, lastCheckpoint, anchor, reason }: OrgReport): string[] {
  const anchored = anchor ? `${anchor.checked} up to ${anchor.lastNumber} of ${anchor.lastAt}` : '-';
  return [slug ?? orgId, verdict, String(eventCount), String(lastCheckpoint ?? '-'), anchored, reason ?? ''];
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
