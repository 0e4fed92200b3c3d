import { readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { RialtoError } from '../../kernel/errors.js';

interface Claim {
  readonly pid: number;
  /** Tells a process from a later one with the same number; empty where the system does not say. */
  readonly birth: string;
  readonly settled: boolean;
}

const prefix = 'owner-';

/**
 * Makes this process the only owner of the folder until the returned function is called. Each process writes its own file
 * first and looks at the others' second, so of two that start together one wins, and what a killed owner left counts for
 * nothing. Throws `conflict` when a live process owns it.
 */
export async function claimFolder(folder: string): Promise<() => void> {
  const own: Claim = { pid: process.pid, birth: birthOf(process.pid) ?? '', settled: false };
  const withdraw = (): void => rmSync(fileOf(folder, own.pid), { force: true });
  if (liveOwner(folder)?.pid === own.pid) throw taken(own.pid);
  write(folder, own);
  try {
    await outwait(folder, own);
    write(folder, { ...own, settled: true });
    return withdraw;
  } catch (error) {
    withdraw();
    throw error;
  }
}

/** The live process that owns the folder, if there is one. */
export function liveOwner(folder: string): { readonly pid: number } | undefined {
  return liveClaims(folder).find((claim) => claim.settled);
}

/** False for a process that ended, also while nobody has collected it. */
export function isAlive(pid: number): boolean {
  return birthOf(pid) !== undefined;
}

async function outwait(folder: string, own: Claim): Promise<void> {
  for (;;) {
    const rivals = liveClaims(folder).filter(({ pid }) => pid !== own.pid);
    const stronger = rivals.find(({ settled, pid }) => settled || pid < own.pid);
    if (stronger) throw taken(stronger.pid);
    if (rivals.length === 0) return;
    await sleep(10);
  }
}

function taken(pid: number): RialtoError {
  return new RialtoError('conflict', {
    message: `process ${pid} runs on this data folder; give this one its own with RIALTO_DATA_DIR`,
    data: { pid },
  });
}

function fileOf(folder: string, pid: number): string {
  return join(folder, `${prefix}${pid}`);
}

// Renamed into place, so that nobody reads half of it.
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

/** When the process began, in the words of the system; undefined when it does not run. */
function birthOf(pid: number): string | undefined {
  if (process.platform !== 'linux') return canSignal(pid) ? '' : undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // from field 3, the state, on: proc(5)
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
