import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import type { AgentCard } from '@a2a-js/sdk';
import { agentCardHandler } from '@a2a-js/sdk/server/express';
import express from 'express';
import { calculateJwkThumbprint, FlattenedSign, type JWK } from 'jose';
import { canonicalJson } from '../../../src/kernel/canonical-json.js';
import type { StubAgent } from '../stubs/stub-agent.js';
import type { Wire } from '../stubs/stub-wire.js';

/** A key that signs cards, as the publisher of a card holds it. */
export interface CardSigningKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: KeyObject;
  readonly jwk: JWK & { kid: string };
  readonly thumbprint: string;
}

const pairs = {
  EdDSA: () => generateKeyPairSync('ed25519'),
  ES256: () => generateKeyPairSync('ec', { namedCurve: 'P-256' }),
  ES384: () => generateKeyPairSync('ec', { namedCurve: 'P-384' }),
  RS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
  PS256: () => generateKeyPairSync('rsa', { modulusLength: 2_048 }),
};

export async function cardSigningKey(kid: string, alg: keyof typeof pairs = 'ES256'): Promise<CardSigningKey> {
  const { privateKey, publicKey } = pairs[alg]();
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid, alg, use: 'sig' } as JWK & { kid: string };
  return { kid, alg, privateKey, jwk, thumbprint: await calculateJwkThumbprint(jwk) };
}

/** Signs `text`, or the canonical form of the card without its signatures when `text` is absent. */
export async function signatureOf(
  card: Wire,
  { kid, alg, privateKey }: CardSigningKey,
  { text = canonicalJson({ ...card, signatures: undefined }), ...header }: { text?: string } & Wire = {},
): Promise<{ protected: string; signature: string }> {
  const jws = await new FlattenedSign(Buffer.from(text))
    .setProtectedHeader({ alg, kid, typ: 'JOSE', ...header })
    .sign(privateKey);
  return { protected: jws.protected!, signature: jws.signature };
}

/** Makes an agent serve `keys` at `/jwks.json` and sign its card with them. Returns the card. */
export async function signCardOf(agent: StubAgent, ...keys: CardSigningKey[]): Promise<Wire> {
  serveKeys(agent, ...keys);
  const { signatures: _old, ...card } = agent.card;
  const jku = `${agent.url}/jwks.json`;
  agent.card = { ...card, signatures: await Promise.all(keys.map((key) => signatureOf(card, key, { jku }))) };
  return agent.card;
}

export function serveKeys(agent: StubAgent, ...keys: CardSigningKey[]): void {
  agent.set((call) => call.send(200, JSON.stringify({ keys: keys.map(({ jwk }) => jwk) }), json), 'unknown');
}

/** Makes the key server of an agent fail while the agent itself still works. */
export function loseKeys(agent: StubAgent): void {
  agent.set((call) => call.send(503, '{}', json), 'unknown');
}

/** Encodes any protected header, as an attacker could write it. */
export function headerText(header: Wire): string {
  return Buffer.from(JSON.stringify(header)).toString('base64url');
}

const json = { 'content-type': 'application/json' };

/** Returns a card as the SDK serves it; with `isBoth`, it has the members of both versions. */
export async function servedBySdk(card: AgentCard, isBoth: boolean): Promise<Wire> {
  const handler = agentCardHandler({
    agentCardProvider: () => Promise.resolve(card),
    legacyCompat: { enabled: isBoth },
  });
  const server = express().use(handler).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const answer = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
  server.close();
  return (await answer.json()) as Wire;
}
