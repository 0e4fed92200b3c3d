import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { RialtoError } from '../../kernel/errors.js';
import type { Settings } from '../../platform/config/settings.js';
import type { SafeFetch, SafeRequest } from '../../platform/http/outbound/safe-fetch.js';
import { lineOf, type AnchoredCheckpoint } from '../checkpoint.js';
import type { AuditTimestampStore } from '../timestamps/audit-timestamp.store.js';

const timeoutMs = 10_000;
const newline = '\n'.charCodeAt(0);
/** Largest answer of a time-stamping authority. A token has some kilobytes, most of it certificates. */
const maxAnswerBytes = 65_536;

const settingOf = {
  file: 'RIALTO_AUDIT_ANCHOR_FILE',
  url: 'RIALTO_AUDIT_ANCHOR_URL',
  timestamp: 'RIALTO_AUDIT_TIMESTAMP_URL',
} as const satisfies Record<string, keyof Settings>;

export type AnchorKind = keyof typeof settingOf;

/** A place outside the database that stores or signs checkpoints. It may get the same checkpoint more than once. */
export interface AnchorSink {
  readonly kind: AnchorKind;
  /**
   * Delivers a checkpoint and resolves when it is stored. Throws `unprocessable` when the anchor refused this
   * checkpoint, and another error when the anchor is not available.
   */
  store(checkpoint: AnchoredCheckpoint): Promise<void>;
}

/** Returns the kinds of the configured anchors. */
export function anchorKinds(settings: Settings): AnchorKind[] {
  return (Object.keys(settingOf) as AnchorKind[]).filter((kind) => settings[settingOf[kind]] !== undefined);
}

/** Returns the configured anchors. */
export function anchorSinks(settings: Settings, safeFetch: SafeFetch, timestamps: AuditTimestampStore): AnchorSink[] {
  const stores: Record<AnchorKind, (place: string, checkpoint: AnchoredCheckpoint) => Promise<void>> = {
    file: (path, checkpoint) => appendLine(path, lineOf(checkpoint)),
    url: (url, checkpoint) => postLine(safeFetch, url, lineOf(checkpoint)),
    timestamp: async (url, checkpoint) =>
      timestamps.insert(checkpoint, await stampLine(safeFetch, url, lineOf(checkpoint))),
  };
  return anchorKinds(settings).map((kind) => ({
    kind,
    store: (checkpoint) => stores[kind](settings[settingOf[kind]]!, checkpoint),
  }));
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
  const request = requestOf(url, 'application/json', line);
  acceptStatus((await safeFetch.beginning({ ...request, maxBytes: 1_024 })).status);
}

/** Gets a timestamp of a line, and verifies it. The authority receives the hash of the line only. */
async function stampLine(safeFetch: SafeFetch, url: string, line: string): Promise<Uint8Array> {
  // Loaded here, because most gateways have no time-stamping authority.
  const { stampRequest, tokenOf } = await import('../timestamps/time-stamping.js');
  const stamp = stampRequest(line);
  const request = requestOf(url, 'application/timestamp-query', stamp.der);
  const { status, body } = await safeFetch.request({ ...request, maxBytes: maxAnswerBytes });
  acceptStatus(status);
  return tokenOf(body, stamp);
}

function requestOf(url: string, type: string, body: SafeRequest['body']): Omit<SafeRequest, 'maxBytes'> {
  const headers = { 'Content-Type': type, 'User-Agent': 'rialto-audit' };
  return { method: 'POST', url, headers, body, deadlineMs: timeoutMs };
}

function acceptStatus(status: number): void {
  if (status >= 200 && status < 300) return;
  const isRefused = status >= 400 && status < 500 && status !== 429;
  throw new RialtoError(isRefused ? 'unprocessable' : 'unavailable', { message: `the anchor answered ${status}` });
}
