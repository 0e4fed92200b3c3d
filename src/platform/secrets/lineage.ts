import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import type { Lineage } from '../../kernel/call-context.js';
import { isJsonObject } from '../../kernel/json.js';

/** Header that carries the lineage of a call; ours to every agent, believed when it is whole. */
export const lineageHeader = 'x-rialto-lineage';

const version = 'v1';
const shape = /^((v1\.([\w-]{8})\.([\w-]+))\.([\w-]{43}))\.([\w-]{8})$/;
const shortLength = 8;
const longestId = 200;
const longestHeader = 4_096;

/** What travels: how deep, through whom, until when. */
export interface SealedLineage extends Lineage {
  readonly depth: number;
}

/** A lineage that another deployment signed: whole, and nothing that we can believe. */
export const foreign = 'foreign';

/**
 * Signs and reads the lineage of delegated calls: `v1.<key id>.<base64url of JSON>.<base64url hmac-sha256>.<check>`. Whoever has the same
 * secret, as the gateways of one workspace do, reads it; what was changed on its way reads as damaged, whoever signed it (AN-61).
 */
export class LineageSeal {
  private readonly kid: string;

  /** @param key of the deployment, or of the workspace that shares `A2A_SECRET`. */
  constructor(private readonly key: Buffer) {
    this.kid = createHmac('sha256', key).update('lineage key').digest('base64url').slice(0, shortLength);
  }

  seal({ depth, path, deadlineAt }: SealedLineage): string {
    const text = Buffer.from(JSON.stringify({ depth, path: path.map(lineageId), deadlineAt })).toString('base64url');
    const signed = `${version}.${this.kid}.${text}`;
    const whole = `${signed}.${this.macOf(signed)}`;
    return `${whole}.${checkOf(whole)}`;
  }

  /** Undefined when it is not whole. */
  open(header: string): SealedLineage | typeof foreign | undefined {
    if (header.length > longestHeader) return undefined;
    const [, whole = '', signed = '', kid, text = '', mac = '', check] = shape.exec(header) ?? [];
    // Anybody can make the check: it tells damage from another's key, which the mac alone cannot.
    if (check === undefined || check !== checkOf(whole)) return undefined;
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

function checkOf(whole: string): string {
  return createHash('sha256').update(whole).digest('base64url').slice(0, shortLength);
}

/** The name of an agent in a lineage. */
export function lineageId(id: string): string {
  return id.length > longestId ? `${id.slice(0, longestId - 1)}…` : id;
}
