import { createHmac, timingSafeEqual } from 'node:crypto';
import type { Lineage } from '../../kernel/call-context.js';
import { isJsonObject } from '../../kernel/json.js';

/** Header that carries the lineage of a call; ours to every agent, believed when it is whole. */
export const lineageHeader = 'x-rialto-lineage';

const version = 'v1';
const longestId = 200;
const longestHeader = 4_096;

/** What travels: how deep, through whom, until when. */
export interface SealedLineage extends Lineage {
  readonly depth: number;
}

/**
 * Signs and reads the lineage of delegated calls: `v1.<base64url of JSON>.<base64url hmac-sha256>`. Whoever has the same secret, as the
 * gateways of one workspace do, reads it; what was changed on its way, or signed by others, reads as damaged (AN-61).
 */
export class LineageSeal {
  /** @param key of the deployment, or of the workspace that shares `A2A_SECRET`. */
  constructor(private readonly key: Buffer) {}

  seal({ depth, path, deadlineAt }: SealedLineage): string {
    const text = Buffer.from(JSON.stringify({ depth, path: path.map(lineageId), deadlineAt })).toString('base64url');
    return `${version}.${text}.${this.macOf(text)}`;
  }

  /** Undefined when it is not whole. */
  open(header: string): SealedLineage | undefined {
    const [form, text = '', mac = '', ...more] = header.split('.');
    if (form !== version || more.length > 0 || header.length > longestHeader) return undefined;
    const [given, expected] = [Buffer.from(mac), Buffer.from(this.macOf(text))];
    if (given.length !== expected.length || !timingSafeEqual(given, expected)) return undefined;
    const value: unknown = JSON.parse(Buffer.from(text, 'base64url').toString('utf8'));
    return isJsonObject(value) ? (value as unknown as SealedLineage) : undefined;
  }

  private macOf(text: string): string {
    return createHmac('sha256', this.key).update(`${version}.${text}`).digest('base64url');
  }
}

/** The name of an agent in a lineage. */
export function lineageId(id: string): string {
  return id.length > longestId ? `${id.slice(0, longestId - 1)}…` : id;
}
