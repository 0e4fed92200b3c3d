import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RialtoError } from '../kernel/errors.js';
import type { Settings } from '../platform/config/settings.js';
import type { SafeFetch } from '../platform/http/outbound/safe-fetch.js';

const timeoutMs = 10_000;
const newline = '\n'.charCodeAt(0);

export type AnchorKind = 'file' | 'url';

/** A place outside the database that keeps checkpoints. It may be given one more than once. */
export interface AnchorSink {
  readonly kind: AnchorKind;
  /** Resolves when the line is kept. Throws `unprocessable` when this one line was refused, and anything else when the anchor is away. */
  keep(line: string): Promise<void>;
}

/** The kinds of anchors that are configured. */
export function anchorKinds({ RIALTO_AUDIT_ANCHOR_FILE: file, RIALTO_AUDIT_ANCHOR_URL: url }: Settings): AnchorKind[] {
  return [...(file === undefined ? [] : ['file' as const]), ...(url === undefined ? [] : ['url' as const])];
}

/** The anchors that are configured. */
export function anchorSinks(settings: Settings, safeFetch: SafeFetch): AnchorSink[] {
  const { RIALTO_AUDIT_ANCHOR_FILE: file, RIALTO_AUDIT_ANCHOR_URL: url } = settings;
  return [
    ...(file === undefined ? [] : [{ kind: 'file' as const, keep: (line: string) => appendLine(file, line) }]),
    ...(url === undefined ? [] : [{ kind: 'url' as const, keep: (line: string) => postLine(safeFetch, url, line) }]),
  ];
}

/** Appends a line and waits until the disk has it. A line that broke off before, such as on a full disk, is ended first. */
async function appendLine(path: string, line: string): Promise<void> {
  const file = await open(path, 'a+', 0o600);
  try {
    const { size } = await file.stat();
    const end = size === 0 ? undefined : (await file.read(Buffer.alloc(1), 0, 1, size - 1)).buffer[0];
    await file.appendFile(`${size === 0 || end === newline ? '' : '\n'}${line}\n`);
    await file.sync();
    if (size === 0) await syncFolder(dirname(path));
  } finally {
    await file.close();
  }
}

/** Without this a new file may be gone after a loss of power, with all that was synced in it. */
async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

async function postLine(safeFetch: SafeFetch, url: string, line: string): Promise<void> {
  const headers = { 'Content-Type': 'application/json', 'User-Agent': 'rialto-audit' };
  const limits = { deadlineMs: timeoutMs, maxBytes: 1_024 };
  const { status } = await safeFetch.beginning({ method: 'POST', url, headers, body: line, ...limits });
  if (status >= 200 && status < 300) return;
  const isRefused = status >= 400 && status < 500 && status !== 429;
  throw new RialtoError(isRefused ? 'unprocessable' : 'unavailable', { message: `the anchor answered ${status}` });
}
