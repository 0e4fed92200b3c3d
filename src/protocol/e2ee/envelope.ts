import { canonicalJson } from '../../kernel/canonical-json.js';
import { E2eeError } from './errors.js';

/** Version of the envelope of this library. Others exist; the gateway relays them unread. */
export const envelopeVersion = 'rialto-e2ee-v1';

/**
 * An encrypted message: the data of one data part. All members are strings, visible to the relay, and authenticated.
 */
export interface Envelope {
  /** base64url of byte 1, the encapsulated key (32) and the ciphertext with its tag. */
  readonly encrypted_payload: string;
  readonly encryption_version: string;
  readonly sender: string;
  readonly sender_signing_kid: string;
  readonly recipient: string;
  readonly recipient_kid: string;
  readonly message_id: string;
  readonly context_id?: string;
  readonly task_id?: string;
  /** The message that this one answers. */
  readonly in_reply_to?: string;
  /** Media type of the plaintext. */
  readonly content_type: string;
  /** Number of a chunk of a stream, from 0 on. */
  readonly stream_seq?: string;
  /** `true` on the last chunk. */
  readonly stream_end?: string;
}

/** The place of a message: as its sender states it, and as its receiver expects it. */
export interface Place {
  readonly messageId?: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly inReplyTo?: string;
}

const required = [
  ...['encrypted_payload', 'encryption_version', 'sender', 'sender_signing_kid'],
  ...['recipient', 'recipient_kid', 'message_id', 'content_type'],
];
const first = 1;
const encLength = 32;
const tagLength = 16;
const signatureLength = 64;

/**
 * Reads an envelope. Throws `malformed`, or `wrong_version` for another version than that of this library.
 */
export function readEnvelope(value: unknown): Envelope {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new E2eeError('malformed', 'an envelope is an object');
  const members = value as Record<string, unknown>;
  requireTexts(members);
  const missing = required.find((name) => !Object.hasOwn(members, name));
  if (missing !== undefined) throw new E2eeError('malformed', `${missing}: is missing`);
  const { encryption_version: version } = members;
  if (version !== envelopeVersion)
    throw new E2eeError('wrong_version', `encryption_version is not ${envelopeVersion}; ask the sender to use it`);
  return value as Envelope;
}

/**
 * Throws `malformed` unless all members are strings without lone surrogates: canonical JSON, which the encryption
 * authenticates, has no form for these.
 */
export function requireTexts(members: object): void {
  for (const [name, member] of Object.entries(members)) {
    if (typeof member !== 'string') throw new E2eeError('malformed', `${name}: is not a string`);
    if (!name.isWellFormed() || !member.isWellFormed())
      throw new E2eeError('malformed', `${name.toWellFormed()}: contains a lone surrogate`);
  }
}

/** Returns the bytes that the encryption authenticates: all members but the payload, as canonical JSON (RFC 8785). */
export function aadOf({ encrypted_payload: _, ...visible }: Partial<Envelope>): Buffer {
  return Buffer.from(canonicalJson(visible));
}

/** The HPKE `info` of a message for this key. */
export function infoOf(recipientKid: string): Buffer {
  return Buffer.from(`${envelopeVersion}${recipientKid}`);
}

/** Returns the bytes that the sender signs. @param aadHash SHA-256 of the AAD. */
export function signedBytes(enc: Uint8Array, aadHash: Uint8Array, payload: Uint8Array): Buffer {
  return Buffer.concat([Buffer.from(`${envelopeVersion} signature`), enc, aadHash, payload]);
}

export function writeOuter(enc: Uint8Array, ciphertext: Uint8Array): string {
  return Buffer.concat([Buffer.of(first), enc, ciphertext]).toString('base64url');
}

/** Splits `encrypted_payload`. Throws `malformed`, also for base64url that is not in its only canonical form. */
export function readOuter(text: string): { enc: Buffer; ciphertext: Buffer } {
  const bytes = Buffer.from(text, 'base64url');
  if (bytes.toString('base64url') !== text)
    throw new E2eeError('malformed', 'encrypted_payload: is not base64url without padding');
  if (bytes[0] !== first || bytes.length < 1 + encLength + tagLength)
    throw new E2eeError('malformed', 'encrypted_payload: has another first byte than 1, or is too short');
  return { enc: bytes.subarray(1, 1 + encLength), ciphertext: bytes.subarray(1 + encLength) };
}

/** The plaintext of HPKE: length and text of the signing kid, the signature, the payload. */
export function writeInner(kid: string, signature: Uint8Array, payload: Uint8Array): Buffer {
  const name = Buffer.from(kid);
  return Buffer.concat([Buffer.of(name.length), name, signature, payload]);
}

/** Splits the plaintext of HPKE. Throws `malformed`. */
export function readInner(bytes: Buffer): { kid: string; signature: Buffer; payload: Buffer } {
  const start = 1 + (bytes[0] ?? 0);
  const end = start + signatureLength;
  if (bytes.length < end) throw new E2eeError('malformed', 'encrypted_payload: its content is too short');
  const kid = bytes.subarray(1, start).toString();
  return { kid, signature: bytes.subarray(start, end), payload: bytes.subarray(end) };
}

/** The members of an envelope for a place. */
export function placeMembers({ messageId, contextId, taskId, inReplyTo }: Place): Partial<Envelope> {
  return {
    ...(messageId !== undefined && { message_id: messageId }),
    ...(contextId !== undefined && { context_id: contextId }),
    ...(taskId !== undefined && { task_id: taskId }),
    ...(inReplyTo !== undefined && { in_reply_to: inReplyTo }),
  };
}

/**
 * Checks that an envelope arrived where its sender sent it. A first message names no task, because its task does not
 * exist yet. Throws `wrong_context`.
 */
export function requirePlace(envelope: Envelope, expected: Place): void {
  const pairs = [
    ['message_id', expected.messageId],
    ['context_id', expected.contextId],
    ['in_reply_to', expected.inReplyTo],
  ] as const;
  for (const [name, value] of pairs) if (value !== undefined && envelope[name] !== value) throw wrongPlace(name);
  const { task_id: taskId } = envelope;
  if (expected.taskId !== undefined && taskId !== undefined && taskId !== expected.taskId) throw wrongPlace('task_id');
}

function wrongPlace(name: string): E2eeError {
  return new E2eeError('wrong_context', `${name}: the message was sent for another place than it arrived at`);
}
