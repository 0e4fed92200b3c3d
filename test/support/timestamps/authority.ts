import { hash, randomBytes, webcrypto } from 'node:crypto';
import * as asn1js from 'asn1js';
import {
  AlgorithmIdentifier,
  Attribute,
  AttributeTypeAndValue,
  BasicConstraints,
  Certificate,
  ContentInfo,
  EncapsulatedContentInfo,
  Extension,
  ExtKeyUsage,
  id_eContentType_TSTInfo,
  id_sha256,
  IssuerAndSerialNumber,
  MessageImprint,
  PKIStatus,
  PKIStatusInfo,
  SignedAndUnsignedAttributes,
  SignedData,
  SignerInfo,
  Time,
  TimeStampReq,
  TimeStampResp,
  TSTInfo,
} from 'pkijs';

const timeStamping = '1.3.6.1.5.5.7.3.8';
const day = 86_400_000;

/** Deviations of an authority from RFC 3161. */
export interface Flaws {
  readonly status?: PKIStatus;
  /** Text to stamp in place of that of the request. */
  readonly imprintOf?: string;
  readonly nonce?: Uint8Array;
  readonly at?: Date;
  /** Changes the signed content after it was signed. */
  readonly changesContent?: true;
  /** Signs with a key that is not that of the certificate. */
  readonly otherKey?: true;
  /** Leaves the attribute out that names the certificate. */
  readonly unnamed?: true;
  /** Says in the attributes that this content was signed. */
  readonly contentType?: string;
}

/** A time-stamping authority with a root certificate of its own. */
export interface Authority {
  /** The root certificate as PEM. */
  readonly ca: string;
  /** Answers a TimeStampReq. */
  answer(request: Uint8Array, flaws?: Flaws): Promise<Buffer>;
  /** Stamps a text. */
  stamp(text: string, flaws?: Flaws): Promise<Buffer>;
}

interface Issued {
  readonly certificate: Certificate;
  readonly keys: webcrypto.CryptoKeyPair;
}

/** Makes an authority. `purposes` are the extended key usages of its certificate, and `until` ends its validity. */
export async function makeAuthority(
  name = 'Time',
  { purposes = [timeStamping], critical = true, until = new Date(Date.now() + day) } = {},
): Promise<Authority> {
  const constraints = new BasicConstraints({ cA: true });
  const root = await issue(`${name} root`, new Date(Date.now() + day), [
    extension('2.5.29.19', true, constraints.toSchema()),
  ]);
  const usage = new ExtKeyUsage({ keyPurposes: purposes });
  const signer = await issue(`${name} signer`, until, [extension('2.5.29.37', critical, usage.toSchema())], root);
  const answer = async (der: Uint8Array, flaws: Flaws = {}): Promise<Buffer> => {
    const status = new PKIStatusInfo({ status: flaws.status ?? PKIStatus.granted });
    const granted = status.status <= PKIStatus.grantedWithMods;
    const timeStampToken = granted ? await tokenFor(TimeStampReq.fromBER(der), signer, flaws) : undefined;
    return Buffer.from(new TimeStampResp({ status, ...(timeStampToken && { timeStampToken }) }).toSchema().toBER());
  };
  return {
    ca: pemOf(root.certificate),
    answer,
    stamp: async (text, flaws = {}) => {
      const request = new TimeStampReq({ version: 1, messageImprint: imprintOf(text) });
      return Buffer.from((await tokenFor(request, signer, flaws)).toSchema().toBER());
    },
  };
}

function extension(extnID: string, critical: boolean, value: asn1js.BaseBlock): Extension {
  return new Extension({ extnID, critical, extnValue: value.toBER(false) });
}

function imprintOf(text: string): MessageImprint {
  return new MessageImprint({
    hashAlgorithm: new AlgorithmIdentifier({ algorithmId: id_sha256, algorithmParams: new asn1js.Null() }),
    hashedMessage: new asn1js.OctetString({ valueHex: hash('sha256', text, 'buffer') }),
  });
}

function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey({ name: 'ECDSA', namedCurve: 'P-256' }, true, ['sign', 'verify']);
}

async function issue(name: string, until: Date, extensions: Extension[], issuer?: Issued): Promise<Issued> {
  const keys = await newKeys();
  const certificate = new Certificate({
    version: 2,
    serialNumber: new asn1js.Integer({ valueHex: Buffer.concat([Buffer.of(0x40), randomBytes(7)]) }),
    notBefore: new Time({ value: new Date(Date.now() - 365 * day) }),
    notAfter: new Time({ value: until }),
    extensions,
  });
  const commonName = new asn1js.Utf8String({ value: name });
  certificate.subject.typesAndValues.push(new AttributeTypeAndValue({ type: '2.5.4.3', value: commonName }));
  certificate.issuer = (issuer?.certificate ?? certificate).subject;
  await certificate.subjectPublicKeyInfo.importKey(keys.publicKey);
  await certificate.sign((issuer?.keys ?? keys).privateKey, 'SHA-256');
  return { certificate, keys };
}

async function tokenFor(request: TimeStampReq, signer: Issued, flaws: Flaws): Promise<ContentInfo> {
  const nonce = flaws.nonce ? new asn1js.Integer({ valueHex: flaws.nonce }) : request.nonce;
  const info = new TSTInfo({
    version: 1,
    policy: '1.2.3.4.1',
    messageImprint: flaws.imprintOf === undefined ? request.messageImprint : imprintOf(flaws.imprintOf),
    serialNumber: new asn1js.Integer({ valueHex: Buffer.concat([Buffer.of(0x40), randomBytes(7)]) }),
    genTime: flaws.at ?? new Date(),
    ...(nonce && { nonce }),
  });
  const content = Buffer.from(info.toSchema().toBER());
  const certificateDer = Buffer.from(signer.certificate.toSchema(true).toBER());
  const { issuer, serialNumber } = signer.certificate;
  const attribute = (type: string, value: asn1js.BaseBlock): Attribute => new Attribute({ type, values: [value] });
  const octets = (of: Buffer, algorithm: string) => new asn1js.OctetString({ valueHex: hash(algorithm, of, 'buffer') });
  const sequence = (value: asn1js.BaseBlock): asn1js.Sequence => new asn1js.Sequence({ value: [value] });
  const names = attribute('1.2.840.113549.1.9.16.2.47', sequence(sequence(sequence(octets(certificateDer, 'sha256')))));
  const attributes = [
    attribute(
      '1.2.840.113549.1.9.3',
      new asn1js.ObjectIdentifier({ value: flaws.contentType ?? id_eContentType_TSTInfo }),
    ),
    attribute('1.2.840.113549.1.9.4', octets(content, 'sha256')),
    ...(flaws.unnamed ? [] : [names]),
  ];
  const signed = new SignedData({
    version: 3,
    encapContentInfo: new EncapsulatedContentInfo({
      eContentType: id_eContentType_TSTInfo,
      eContent: new asn1js.OctetString({ valueHex: content }),
    }),
    certificates: [signer.certificate],
    signerInfos: [
      new SignerInfo({
        version: 1,
        sid: new IssuerAndSerialNumber({ issuer, serialNumber }),
        signedAttrs: new SignedAndUnsignedAttributes({ type: 0, attributes }),
      }),
    ],
  });
  const { privateKey } = flaws.otherKey ? await newKeys() : signer.keys;
  await signed.sign(privateKey, 0, 'SHA-256');
  if (flaws.changesContent) {
    info.genTime = new Date(info.genTime.getTime() + 1_000);
    signed.encapContentInfo.eContent = new asn1js.OctetString({ valueHex: info.toSchema().toBER() });
  }
  return new ContentInfo({ contentType: ContentInfo.SIGNED_DATA, content: signed.toSchema(true) });
}

function pemOf(certificate: Certificate): string {
  const lines = Buffer.from(certificate.toSchema(true).toBER())
    .toString('base64')
    .match(/.{1,64}/g)!;
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}
