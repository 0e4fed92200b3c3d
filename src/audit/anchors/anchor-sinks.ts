import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RialtoError } from '../../kernel/errors.js';
import type { Settings } from '../../platform/config/settings.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';

const timeoutMs = 10_000;
const newline = '\n'.charCodeAt(0);

export type AnchorKind = 'file' | 'url';

/** A place outside the database that stores checkpoints. It may get the same checkpoint more than once. */
export interface AnchorSink {
  readonly kind: AnchorKind;
  /**
   * Stores a line and resolves when it is stored. Throws `unprocessable` when the anchor refused this line, and
   * another error when the anchor is not available.
   */
  store(line: string): Promise<void>;
}

/** Returns the kinds of the configured anchors. */
export function anchorKinds({ RIALTO_AUDIT_ANCHOR_FILE: file, RIALTO_AUDIT_ANCHOR_URL: url }: Settings): AnchorKind[] {
  return [...(file === undefined ? [] : ['file' as const]), ...(url === undefined ? [] : ['url' as const])];
}

/** Returns the configured anchors. */
export function anchorSinks(settings: Settings, safeFetch: SafeFetch): AnchorSink[] {
  const { RIALTO_AUDIT_ANCHOR_FILE: file, RIALTO_AUDIT_ANCHOR_URL: url } = settings;
  return [
    ...(file === undefined ? [] : [{ kind: 'file' as const, store: (line: string) => appendLine(file, line) }]),
    ...(url === undefined ? [] : [{ kind: 'url' as const, store: (line: string) => postLine(safeFetch, url, line) }]),
  ];
}

/**
 * Appends a line and waits until it is on the disk. If the file ends in an incomplete line, for example from a full
 * disk, it starts a new line first.
 */
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

/** Syncs a directory. Otherwise a new file with its synced content can be lost when the power fails. */
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
