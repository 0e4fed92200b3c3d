import { constants, hash, verify, X509Certificate } from 'node:crypto';
import * as asn1 from 'asn1js';
import { RialtoError } from '../../kernel/errors.js';

/** Object identifier of SHA-256. */
export const sha256Oid = '2.16.840.1.101.3.4.2.1';
const oids = {
  signedData: '1.2.840.113549.1.7.2',
  timeInfo: '1.2.840.113549.1.9.16.1.4',
  contentType: '1.2.840.113549.1.9.3',
  messageDigest: '1.2.840.113549.1.9.4',
  signingCertificate: '1.2.840.113549.1.9.16.2.12',
  signingCertificateV2: '1.2.840.113549.1.9.16.2.47',
  extendedKeyUsage: '2.5.29.37',
  timeStamping: '1.3.6.1.5.5.7.3.8',
  rsa: '1.2.840.113549.1.1.1',
  rsaPss: '1.2.840.113549.1.1.10',
} as const;
const hashes: Readonly<Record<string, string>> = {
  [sha256Oid]: 'sha256',
  '2.16.840.1.101.3.4.2.2': 'sha384',
  '2.16.840.1.101.3.4.2.3': 'sha512',
};
/** Hashes of the signature algorithms that name one: RSA (PKCS #1) and ECDSA. */
const signatureHashes: Readonly<Record<string, string>> = {
  '1.2.840.113549.1.1.11': 'sha256',
  '1.2.840.113549.1.1.12': 'sha384',
  '1.2.840.113549.1.1.13': 'sha512',
  '1.2.840.10045.4.3.2': 'sha256',
  '1.2.840.10045.4.3.3': 'sha384',
  '1.2.840.10045.4.3.4': 'sha512',
};

/** A verified TimeStampToken. */
export interface Timestamp {
  /** Time of the authority. */
  readonly at: Date;
  /** Nonce of the request, in hexadecimal digits. */
  readonly nonce?: string;
  /** Certificate that signed, and all certificates of the token. */
  readonly signer: X509Certificate;
  readonly certificates: readonly X509Certificate[];
}

/**
 * Reads a TimeStampToken (RFC 3161 section 2.4.2) and verifies that it is for a text, and that the certificate in it
 * that is for time stamping signed it. `isTrusted` checks the authority. Throws `unprocessable` for another token.
 */
export function verifyTimestamp(token: Uint8Array, text: string): Timestamp {
  try {
    return verified(token, text);
  } catch (cause) {
    throw new RialtoError('unprocessable', { message: `it is no valid timestamp: ${(cause as Error).message}`, cause });
  }
}

/** Parses a buffer that is one ASN.1 value. Throws for another one. */
export function parseAsn1(der: Uint8Array): asn1.BaseBlock {
  const { result, offset } = asn1.fromBER(der);
  if (result.error || offset !== der.length) throw malformed();
  return result;
}

/** Returns the elements of an ASN.1 value; empty for a primitive one. */
export function elements(value: unknown): asn1.BaseBlock[] {
  return value instanceof asn1.Constructed ? value.valueBlock.value : [];
}

/** Reads SignedData (RFC 5652 section 5.1) with a TSTInfo. */
function verified(token: Uint8Array, text: string): Timestamp {
  const [type, wrapped] = elements(parseAsn1(token));
  if (oidOf(type) !== oids.signedData) throw malformed();
  const [, , encapsulated, ...more] = elements(elements(wrapped)[0]);
  const [contentType, content] = elements(encapsulated);
  if (oidOf(contentType) !== oids.timeInfo) throw malformed();
  const info = octetsOf(elements(content)[0]);
  const certificates = elements(more.find((part) => isTagged(part, 0)))
    .filter((part) => part instanceof asn1.Sequence)
    .map((part) => part.valueBeforeDecodeView);
  const [signerInfo, ...others] = elements(more.at(-1));
  if (others.length > 0) throw new Error('it has several signers');
  const { at, nonce } = readInfo(info, text);
  const signer = verifySignature(signerInfo, info, certificates);
  return { at, ...(nonce !== undefined && { nonce }), signer, certificates: certificates.map(certificateOf) };
}

/** Reads TSTInfo (RFC 3161 section 2.4.2). Throws when it is not for the text. */
function readInfo(info: Buffer, text: string): Pick<Timestamp, 'at' | 'nonce'> {
  const [, , imprint, , time, ...more] = elements(parseAsn1(info));
  const [algorithm, digest] = elements(imprint);
  const isForText = octetsOf(digest).equals(hash('sha256', text, 'buffer'));
  if (algorithmOf(algorithm) !== sha256Oid || !isForText) throw new Error('it is for another text');
  if (!(time instanceof asn1.GeneralizedTime)) throw malformed();
  const nonce = more.find((part) => part instanceof asn1.Integer);
  const at = time.toDate();
  if (Number.isNaN(at.getTime())) throw malformed();
  return { at, ...(nonce && { nonce: Buffer.from(nonce.valueBlock.valueHexView).toString('hex') }) };
}

/**
 * Verifies a SignerInfo (RFC 5652 section 5.3) and returns the certificate that signed: the one that the signed
 * attributes name by its hash, so that no other certificate with the same key can take its place.
 */
function verifySignature(signerInfo: unknown, content: Buffer, certificates: readonly Uint8Array[]): X509Certificate {
  const [, , digestAlgorithm, signed, algorithm, signature] = elements(signerInfo);
  if (!signed || !isTagged(signed, 0)) throw new Error('its signature covers no attributes');
  const attributes = new Map(
    elements(signed).map((attribute) => [oidOf(elements(attribute)[0]), elements(elements(attribute)[1])[0]]),
  );
  const digest = hashes[algorithmOf(digestAlgorithm) ?? ''];
  if (!digest) throw new Error('its hash algorithm is not SHA-256, SHA-384 or SHA-512');
  const isForContent =
    oidOf(attributes.get(oids.contentType)) === oids.timeInfo &&
    octetsOf(attributes.get(oids.messageDigest)).equals(hash(digest, content, 'buffer'));
  if (!isForContent) throw new Error('its signature is for another content');
  const isNamed = namedCertificate(attributes);
  const found = certificates.find(isNamed);
  if (!found) throw new Error('it does not have the certificate that signed it');
  if (!isForTimeStamping(found)) throw new Error('its certificate is not for time stamping');
  const signer = certificateOf(found);
  const scheme = algorithmOf(algorithm) ?? '';
  const isPss = scheme === oids.rsaPss;
  const signatureHash = isPss || scheme === oids.rsa ? digest : signatureHashes[scheme];
  if (!signatureHash) throw new Error('its signature algorithm is not supported');
  const bytes = Buffer.from(signed.valueBeforeDecodeView);
  bytes[0] = 0x31; // signed as a SET, without the tag of its place (RFC 5652 section 5.4)
  const key = { key: signer.publicKey, ...(isPss && { padding: constants.RSA_PKCS1_PSS_PADDING }) };
  if (!verify(signatureHash, bytes, key, octetsOf(signature))) throw new Error('its signature is wrong');
  return signer;
}

/** Returns a check for the certificate that signed attributes name (RFC 5035 sections 3 and 4). */
function namedCertificate(attributes: ReadonlyMap<string | undefined, unknown>): (der: Uint8Array) => boolean {
  const v2 = attributes.get(oids.signingCertificateV2);
  const [names] = elements(v2 ?? attributes.get(oids.signingCertificate));
  const parts = elements(elements(names)[0]);
  const algorithm = v2 ? hashes[algorithmOf(parts[0]) ?? sha256Oid] : 'sha1';
  const named = parts.find((part) => part instanceof asn1.OctetString);
  if (!algorithm || !named) return () => false;
  return (der) => hash(algorithm, der, 'buffer').equals(octetsOf(named));
}

/** Checks the only purpose of a certificate, which must be critical (RFC 3161 section 2.3). */
function isForTimeStamping(der: Uint8Array): boolean {
  const [content] = elements(parseAsn1(der));
  const extensions = elements(elements(elements(content).find((part) => isTagged(part, 3)))[0]);
  const usage = extensions.map(elements).find(([type]) => oidOf(type) === oids.extendedKeyUsage);
  const [, critical, value] = usage ?? [];
  if (!(critical instanceof asn1.Boolean) || !critical.getValue()) return false;
  const purposes = elements(parseAsn1(octetsOf(value)));
  return purposes.length === 1 && oidOf(purposes[0]) === oids.timeStamping;
}

/**
 * Returns whether the certificate that signed is one of the authorities, or leads to one over certificates of the
 * token, all valid at the time of the timestamp. Revocation is not checked.
 */
export function isTrusted({ at, signer, certificates }: Timestamp, authorities: readonly X509Certificate[]): boolean {
  const isValid = ({ validFrom, validTo }: X509Certificate): boolean =>
    new Date(validFrom) <= at && at <= new Date(validTo);
  const seen = new Set<X509Certificate>();
  const leads = (certificate: X509Certificate): boolean => {
    if (seen.has(certificate) || !isValid(certificate)) return false;
    seen.add(certificate);
    const isKnown = ({ raw }: X509Certificate): boolean => raw.equals(certificate.raw);
    if (authorities.some((one) => isKnown(one) || (isValid(one) && isIssuer(one, certificate)))) return true;
    return certificates.some((one) => isIssuer(one, certificate) && leads(one));
  };
  return leads(signer);
}

function isIssuer(issuer: X509Certificate, certificate: X509Certificate): boolean {
  return issuer.ca && certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
}

function certificateOf(der: Uint8Array): X509Certificate {
  return new X509Certificate(der);
}

function oidOf(value: unknown): string | undefined {
  return value instanceof asn1.ObjectIdentifier ? value.getValue() : undefined;
}

/** Returns the algorithm of an AlgorithmIdentifier, without its parameters. */
function algorithmOf(value: unknown): string | undefined {
  return oidOf(elements(value)[0]);
}

function octetsOf(value: unknown): Buffer {
  if (!(value instanceof asn1.OctetString)) throw malformed();
  return Buffer.from(value.getValue());
}

function isTagged({ idBlock }: asn1.BaseBlock, tag: number): boolean {
  return idBlock.tagClass === 3 && idBlock.tagNumber === tag;
}

function malformed(): Error {
  return new Error('it has another form');
}
