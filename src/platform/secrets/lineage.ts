import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import type { Lineage } from '../../kernel/call-context.js';
import { isJsonObject } from '../../kernel/json.js';
import type { Settings } from '../config/settings.js';
import { Vault } from './vault.js';

/** Header with the lineage of a call. The gateway sends it to every agent, and trusts it when it is intact. */
export const lineageHeader = 'x-rialto-lineage';

const version = 'v1';
const shape = /^((v1\.([\w-]{8})\.([\w-]+))\.([\w-]{43}))\.([\w-]{8})$/;
const shortLength = 8;
const longestId = 200;
const longestHeader = 4_096;

/** The transported data: depth, path and deadline of a call. */
export interface SealedLineage extends Lineage {
  readonly depth: number;
}

/** Result for a lineage that another deployment signed: it is intact, but not trusted. */
export const foreign = 'foreign';

/**
 * Signs and reads the lineage of delegated calls: `v1.<key id>.<base64url of JSON>.<base64url hmac-sha256>.<check>`.
 * Gateways with the same secret, such as those of one workspace, can read it. A header that was changed on its way
 * counts as damaged, no matter which key signed it (AN-61).
 */
export class LineageSeal {
  private readonly kid: string;

  /**
   * Creates the seal of a deployment. Gateways that share `A2A_SECRET` can read each other's lineage; without the
   * secret each gateway reads only its own.
   */
  static ofDeployment({ A2A_SECRET: secret }: Settings, vault: Vault): LineageSeal {
    const shared = secret === undefined ? vault : new Vault(createHash('sha256').update(secret).digest());
    return new LineageSeal(shared.derive('lineage'));
  }

  /** @param key the key of the deployment, or of the workspace that shares `A2A_SECRET`. */
  constructor(private readonly key: KeyObject) {
    this.kid = createHmac('sha256', key).update('lineage key').digest('base64url').slice(0, shortLength);
  }

  sealLineage({ depth, path, deadlineAt }: SealedLineage): string {
    const text = Buffer.from(JSON.stringify({ depth, path: path.map(lineageId), deadlineAt })).toString('base64url');
    const signed = `${version}.${this.kid}.${text}`;
    const body = `${signed}.${this.macOf(signed)}`;
    return `${body}.${checkOf(body)}`;
  }

  /** Undefined when the header is damaged. */
  openLineage(header: string): SealedLineage | typeof foreign | undefined {
    if (header.length > longestHeader) return undefined;
    const [, body = '', signed = '', kid, text = '', mac = '', check] = shape.exec(header) ?? [];
    // The check needs no key: it distinguishes damage from a foreign key, which the mac alone cannot.
    if (check === undefined || check !== checkOf(body)) return undefined;
    if (kid !== this.kid) return foreign;
    const [given, expected] = [Buffer.from(mac), Buffer.from(this.macOf(signed))];
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    return isJsonObject(value) ? (value as unknown as SealedLineage) : undefined;
  }

  private macOf(signed: string): string {
    return createHmac('sha256', this.key).update(signed).digest('base64url');
  }
}

function checkOf(body: string): string {
  return createHash('sha256').update(body).digest('base64url').slice(0, shortLength);
}

/** Shortens the id of an agent for a lineage. */
export function lineageId(id: string): string {
  return id.length > longestId ? `${id.slice(0, longestId - 1)}…` : id;
}
