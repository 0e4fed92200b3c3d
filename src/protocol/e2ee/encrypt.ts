import { hash, sign } from 'node:crypto';
import {
  type Envelope,
  type Place,
  aadOf,
  envelopeVersion,
  infoOf,
  placeMembers,
  requireTexts,
  signedBytes,
  writeInner,
  writeOuter,
} from './envelope.js';
import { Hpke, type Sealing } from './hpke.js';
import {
  currentKey,
  privateKeyObject,
  requirePrivateKeys,
  type KeyRing,
  type KeySet,
  type PrivateKey,
  type PublicKey,
} from './keys.js';

/** Sender, receiver and place of a message. */
export interface Outgoing extends Place {
  readonly messageId: string;
  /** Keys of the sender; the newest signing key signs. */
  readonly keys: KeyRing;
  /** Name of the sender, by which the receiver finds its keys, e.g. the address of its `keys.json`. */
  readonly sender: string;
  readonly recipient: string;
  /** Published keys of the receiver; the newest encryption key is used. */
  readonly recipientKeys: KeySet;
  /** Media type of the payload; `text/plain` by default. */
  readonly contentType?: string;
}

const hpke = new Hpke();

/**
 * Encrypts and signs one message. Throws `key_expired` when sender or receiver has no valid key, and `malformed` for a
 * name or an id with a lone surrogate.
 */
export async function encrypt(payload: string | Uint8Array, outgoing: Outgoing): Promise<Envelope> {
  const { sealing, envelope, signer } = await prepared(outgoing);
  return seal(sealing, envelope, signer, payload);
}

/** Encrypts the chunks of one stream with one HPKE context. */
export class StreamSealer {
  private next = 0;
  private ended = false;

  private constructor(private readonly start: Prepared) {}

  static async open(outgoing: Outgoing): Promise<StreamSealer> {
    return new StreamSealer(await prepared(outgoing));
  }

  /** Encrypts the next chunk; `last` ends the stream. Call it for one chunk after the other. */
  async seal(chunk: string | Uint8Array, { last = false } = {}): Promise<Envelope> {
    if (this.ended) throw new Error('the stream has ended');
    this.ended = last;
    const { sealing, envelope, signer } = this.start;
    const numbered = { ...envelope, stream_seq: String(this.next++), ...(last && { stream_end: 'true' }) };
    return seal(sealing, numbered, signer, chunk);
  }
}

interface Prepared {
  readonly sealing: Sealing;
  readonly envelope: Visible;
  readonly signer: PrivateKey;
}

type Visible = Omit<Envelope, 'encrypted_payload'>;

async function prepared({ keys, recipientKeys, ...outgoing }: Outgoing): Promise<Prepared> {
  requirePrivateKeys(keys, 'sig');
  const signer = currentKey(keys.keys, 'sig');
  const key: PublicKey = currentKey(recipientKeys.keys, 'enc');
  const envelope: Visible = {
    encryption_version: envelopeVersion,
    sender: outgoing.sender,
    sender_signing_kid: signer.kid,
    recipient: outgoing.recipient,
    recipient_kid: key.kid,
    content_type: outgoing.contentType ?? 'text/plain',
    ...(placeMembers(outgoing) as { message_id: string }),
  };
  requireTexts(envelope);
  return { sealing: await hpke.sealingTo(key, infoOf(key.kid)), envelope, signer };
}

async function seal(
  sealing: Sealing,
  envelope: Visible,
  signer: PrivateKey,
  payload: string | Uint8Array,
): Promise<Envelope> {
  const { enc } = sealing;
  const aad = aadOf(envelope);
  const bytes = Buffer.from(payload);
  const signature = sign(null, signedBytes(enc, hash('sha256', aad, 'buffer'), bytes), privateKeyObject(signer));
  const ciphertext = await sealing.seal(writeInner(signer.kid, signature, bytes), aad);
  return { encrypted_payload: writeOuter(enc, ciphertext), ...envelope };
}
