import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import {
  generateKeys,
  isPublicKey,
  publicKeys,
  rotateKeys,
  type KeyRing,
  type KeyTimes,
} from '../protocol/e2ee/keys.js';
import { systemClock } from '../kernel/clock.js';
import { CommandError, note, print } from './io.js';

export interface KeyOptions {
  /** File with the private keys. */
  readonly file: string;
  /** Days until the new keys expire. */
  readonly days?: string;
}

const mode = 0o600;

/** Writes a file with new private keys, and prints the public ones. Never overwrites a file. */
export function newEncryptionKeys({ file, days }: KeyOptions): void {
  const ring = generateKeys(timesFor(days));
  write(file, ring, 'wx');
  note(`${file} contains the private keys: keep it where only the agent can read it`);
  print(shown(ring));
}

/** Adds new keys to a file, endorsed by those in it, and prints all public keys. The old ones stay. */
export function rotateEncryptionKeys({ file, days }: KeyOptions): void {
  const ring = rotateKeys(readRing(file), timesFor(days));
  const fresh = `${file}.new`;
  write(fresh, ring, 'wx');
  try {
    renameSync(fresh, file);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
  note('publish the new keys; senders use them within seconds, and the old ones still open what is in flight');
  print(shown(ring));
}

/** Prints the public keys of a file. */
export function showEncryptionKeys({ file }: KeyOptions): void {
  print(shown(readRing(file)));
}

function shown(ring: KeyRing): string {
  return JSON.stringify(publicKeys(ring), null, 2);
}

function timesFor(days: string | undefined): KeyTimes {
  if (days === undefined) return {};
  if (!/^[1-9]\d{0,4}$/.test(days)) throw new CommandError(`--days ${days}: give whole days, 1 to 99999`);
  return { exp: Math.floor(systemClock.now() / 1_000) + Number(days) * 86_400 };
}

function write(file: string, ring: KeyRing, flag: 'wx'): void {
  try {
    writeFileSync(file, `${JSON.stringify(ring, null, 2)}\n`, { mode, flag });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new CommandError(`${file} exists already; name another file, or use "keys e2ee rotate"`);
  }
}

function readRing(file: string): KeyRing {
  const ring = parsed(file) as Partial<KeyRing> | null;
  const isRing = Array.isArray(ring?.keys) && ring.keys.every((key) => isPublicKey(key) && 'd' in key);
  if (!isRing) throw new CommandError(`${file} is not a file of "keys e2ee new"`);
  return ring as KeyRing;
}

function parsed(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new CommandError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
