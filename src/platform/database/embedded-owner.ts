import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RialtoError } from '../../kernel/errors.js';

interface Claim {
  readonly pid: number;
  /** Distinguishes a process from a later one with the same pid; empty where the system does not provide it. */
  readonly birth: string;
  readonly settled: boolean;
}

const prefix = 'owner-';

/**
 * Makes this process the only owner of the folder until the returned function is called. Each process first writes
 * its own file and then reads the others', so one of two that start together wins. The file of a killed owner is
 * ignored. Throws `conflict` when a live process owns the folder.
 */
export async function claimFolder(folder: string): Promise<() => void> {
  const ownClaim: Claim = { pid: process.pid, birth: birthOf(process.pid) ?? '', settled: false };
  const withdraw = (): void => rmSync(fileOf(folder, ownClaim.pid), { force: true });
  if (liveOwner(folder)?.pid === ownClaim.pid) throw taken(ownClaim.pid);
  write(folder, ownClaim);
  try {
    await waitForRivals(folder, ownClaim);
    write(folder, { ...ownClaim, settled: true });
    return withdraw;
  } catch (error) {
    withdraw();
    throw error;
  }
}

/** Returns the live process that owns the folder, if there is one. */
export function liveOwner(folder: string): { readonly pid: number } | undefined {
  return liveClaims(folder).find((claim) => claim.settled);
}

/** False for a process that has ended, also while its parent has not collected it (a zombie). */
export function isAlive(pid: number): boolean {
  return birthOf(pid) !== undefined;
}

async function waitForRivals(folder: string, ownClaim: Claim): Promise<void> {
  for (;;) {
    const rivals = liveClaims(folder).filter(({ pid }) => pid !== ownClaim.pid);
    const stronger = rivals.find(({ settled, pid }) => settled || pid < ownClaim.pid);
    if (stronger) throw taken(stronger.pid);
    if (rivals.length === 0) return;
    await sleep(10);
  }
}

function taken(pid: number): RialtoError {
  return new RialtoError('conflict', {
    message: `process ${pid} already uses this data folder; set RIALTO_DATA_DIR to another folder`,
    data: { pid },
  });
}

function fileOf(folder: string, pid: number): string {
  return join(folder, `${prefix}${pid}`);
}

// Renamed into place, so that no process reads a half-written file.
function write(folder: string, claim: Claim): void {
  const draft = join(folder, `claim-${claim.pid}`);
  writeFileSync(draft, JSON.stringify(claim));
  renameSync(draft, fileOf(folder, claim.pid));
}

function liveClaims(folder: string): Claim[] {
  const claims: Claim[] = [];
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix)) continue;
    const claim = read(join(folder, name));
    if (claim && birthOf(claim.pid) === claim.birth) claims.push(claim);
    else rmSync(join(folder, name), { force: true });
  }
  return claims;
}

function read(file: string): Claim | undefined {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Claim;
  } catch {
    return undefined;
  }
}

/** Start time of the process as the system reports it; undefined when the process does not run. */
function birthOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return canSignal(pid) ? '' : undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // starts at field 3, the state: proc(5)
    const bootId = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    return fields[0] === 'Z' || fields[0] === 'X' ? undefined : `${bootId}/${fields[19]}`;
  } catch {
    return undefined;
  }
}

function canSignal(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
