import { hash, verify } from 'node:crypto';
import {
  aadOf,
  infoOf,
  readEnvelope,
  readInner,
  readOuter,
  requirePlace,
  signedBytes,
  type Envelope,
  type Place,
} from './envelope.js';
import { E2eeError } from './errors.js';
import { Hpke, type Opening } from './hpke.js';
import { isValid, publicKeyObject, requirePrivateKeys, type KeyRing, type KeySet } from './keys.js';
import type { ReplayGuard } from './replay-guard.js';

/** Facts that a receiver knows before it opens a message. */
export interface Incoming {
  /** Keys of the receiver; older ones open messages that were in flight during a rotation. */
  readonly keys: KeyRing;
  /** The own name, as senders write it. */
  readonly recipient: string;
  /** Returns the pinned keys of a sender; undefined when the sender is unknown. */
  readonly keysOf: (sender: string) => KeySet | undefined | Promise<KeySet | undefined>;
  /** Ids of the A2A message that the envelope arrived in. */
  readonly place: Place;
  readonly replays?: ReplayGuard;
}

/** A decrypted message with a valid signature. */
export interface Decrypted {
  readonly payload: Buffer;
  readonly contentType: string;
  readonly sender: string;
  readonly envelope: Envelope;
}

const hpke = new Hpke();

/** Opens one message. Throws an E2eeError with the reason for each envelope that is not exactly as it was sent. */
export async function decrypt(value: unknown, incoming: Incoming): Promise<Decrypted> {
  const envelope = readEnvelope(value);
  if (envelope.stream_seq !== undefined || envelope.stream_end !== undefined)
    throw new E2eeError('malformed', 'stream_seq: this is a chunk of a stream; open it with StreamOpener');
  const { enc } = readOuter(envelope.encrypted_payload);
  const decrypted = await openWith(await openingFor(envelope, enc, incoming), envelope, incoming);
  await requireFirstUse(enc, decrypted.envelope, incoming);
  return decrypted;
}

/** Opens the chunks of one stream in their order. */
export class StreamOpener {
  private opening?: Opening;
  private enc?: Buffer;
  private next = 0;
  private hasEnded = false;

  constructor(private readonly incoming: Incoming) {}

  /** Opens the next chunk. Throws `out_of_order` for a chunk that was dropped, repeated, moved or added. */
  async open(value: unknown): Promise<Decrypted> {
    const envelope = readEnvelope(value);
    const { enc } = readOuter(envelope.encrypted_payload);
    const isExpected = !this.hasEnded && envelope.stream_seq === String(this.next);
    if (!isExpected || (this.enc && !this.enc.equals(enc)))
      throw new E2eeError('out_of_order', `stream_seq: expected chunk ${this.next} of the same stream`);
    const opening = this.opening ?? (await openingFor(envelope, enc, this.incoming));
    const decrypted = await openWith(opening, envelope, this.incoming);
    if (!this.opening) await requireFirstUse(enc, envelope, this.incoming);
    [this.opening, this.enc] = [opening, enc];
    this.next++;
    this.hasEnded = envelope.stream_end === 'true';
    return decrypted;
  }

  get hasBegun(): boolean {
    return this.opening !== undefined;
  }

  /** Call it at the end of the connection. Throws `truncated` when the last chunk has not arrived. */
  end(): void {
    if (!this.hasEnded)
      throw new E2eeError('truncated', `the stream ended after ${this.next} chunks, without its last`);
  }
}

async function openingFor(envelope: Envelope, enc: Buffer, { keys, recipient, place }: Incoming): Promise<Opening> {
  requirePrivateKeys(keys, 'enc');
  if (envelope.recipient !== recipient)
    throw new E2eeError('wrong_recipient', 'recipient: the message is for another recipient');
  const key = keys.keys.find(({ kid, use }) => use === 'enc' && kid === envelope.recipient_kid);
  if (!key) throw new E2eeError('wrong_recipient', 'recipient_kid: the message is for a key that is not here');
  requirePlace(envelope, place);
  return hpke.openingWith(key, enc, infoOf(key.kid)).catch(notDecryptable);
}

async function openWith(opening: Opening, envelope: Envelope, { keysOf, place }: Incoming): Promise<Decrypted> {
  requirePlace(envelope, place);
  const { enc, ciphertext } = readOuter(envelope.encrypted_payload);
  const aad = aadOf(envelope);
  const { kid, signature, payload } = readInner(await opening.open(ciphertext, aad).catch(notDecryptable));
  const { sender, sender_signing_kid: stated } = envelope;
  const known = (await keysOf(sender))?.keys.find((one) => one.use === 'sig' && one.kid === stated);
  if (!known) throw new E2eeError('unknown_sender', 'sender_signing_kid: no known sender has this key');
  if (kid !== stated)
    throw new E2eeError('bad_signature', 'sender_signing_kid: the content was signed with another key');
  if (!verify(null, signedBytes(enc, hash('sha256', aad, 'buffer'), payload), publicKeyObject(known), signature))
    throw new E2eeError('bad_signature', 'the signature of the sender is not valid');
  if (!isValid(known))
    throw new E2eeError('key_expired', 'sender_signing_kid: this key of the sender is not valid now (nbf, exp)');
  return { payload, contentType: envelope.content_type, sender, envelope };
}

async function requireFirstUse(enc: Buffer, envelope: Envelope, { replays, place }: Incoming): Promise<void> {
  const id = hash('sha256', enc, 'base64url');
  if (replays && !(await replays.admit(id, place.taskId ?? envelope.message_id)))
    throw new E2eeError('replayed', 'the message was accepted at another place before');
}

function notDecryptable(): never {
  throw new E2eeError(
    'not_decryptable',
    'encrypted_payload: cannot be decrypted; it was changed or is for another key',
  );
}
