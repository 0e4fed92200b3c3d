import { hash, randomBytes } from 'node:crypto';
import * as asn1 from 'asn1js';
import { RialtoError } from '../../kernel/errors.js';
import { elements, parseAsn1, sha256Oid, verifyTimestamp } from './timestamp-token.js';

/** A request for a timestamp. */
export interface StampRequest {
  readonly text: string;
  /** Random hexadecimal digits, which the answer repeats. */
  readonly nonce: string;
  /** TimeStampReq (RFC 3161 section 2.4.1) in DER. It has the hash of the text only. */
  readonly der: Buffer;
}

/** Makes a request for a timestamp of a text. */
export function stampRequest(text: string): StampRequest {
  const nonce = randomBytes(8);
  nonce[0] = (nonce[0]! & 0x3f) | 0x40; // positive, without a leading zero: one encoding only
  const sequence = (...value: asn1.BaseBlock[]): asn1.Sequence => new asn1.Sequence({ value });
  const request = sequence(
    new asn1.Integer({ value: 1 }),
    sequence(
      sequence(new asn1.ObjectIdentifier({ value: sha256Oid }), new asn1.Null()),
      new asn1.OctetString({ valueHex: hash('sha256', text, 'buffer') }),
    ),
    new asn1.Integer({ valueHex: nonce }),
    new asn1.Boolean({ value: true }), // the answer has the certificate of the authority
  );
  return { text, nonce: nonce.toString('hex'), der: Buffer.from(request.toBER()) };
}

/**
 * Returns the token of a TimeStampResp (RFC 3161 section 2.4.2) as the authority encoded it. Throws `unprocessable`
 * when the authority refused, or the token is not a valid timestamp for the request.
 */
export function tokenOf(response: Uint8Array, { text, nonce }: StampRequest): Uint8Array {
  const { status, token } = readResponse(response);
  const isGranted = status === 0 || status === 1;
  if (!isGranted) throw refused(`the time-stamping authority refused with status ${status}`);
  if (verifyTimestamp(token, text).nonce !== nonce) throw refused('the timestamp is for another request');
  return token;
}

function readResponse(response: Uint8Array): { status: number; token: Uint8Array } {
  try {
    const [info, token] = elements(parseAsn1(response));
    const [status] = elements(info);
    if (status instanceof asn1.Integer)
      return { status: status.valueBlock.valueDec, token: token?.valueBeforeDecodeView ?? new Uint8Array() };
  } catch {
    // refused below
  }
  throw refused('the answer is not that of a time-stamping authority');
}

function refused(message: string): RialtoError {
  return new RialtoError('unprocessable', { message });
}
