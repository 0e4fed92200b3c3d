import { createHmac, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { Vault } from '../../platform/secrets/vault.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';

/** The task of ours that a remote agent may push for. */
export interface PushKey {
  readonly taskId: string;
  readonly orgId: string;
}

const shape = /^[A-Za-z0-9_-]{86}$/;
const idBytes = 16;

/**
 * Addresses that remote agents push to, one for each task: `/api/a2a/pushes/<base64url of task id, org id and hmac-sha256>`, the key
 * derived from the deployment's. Nothing is stored: a token is recognised by its mark, and good for its own task alone.
 */
@Injectable()
export class PushTokens {
  /** The one that signs first. */
  private readonly keys: readonly [Buffer, ...Buffer[]];

  constructor(
    vault: Vault,
    private readonly publicUrl: PublicUrl,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'production'>,
  ) {
    this.keys = vault.deriveAll('remote-push');
  }

  /** Where an agent may push; undefined for one that does not, and in production without a public address of https. */
  urlFor({ card }: Pick<RegisteredAgent, 'card'>, key: PushKey): string | undefined {
    if (card?.capabilities.pushNotifications !== true) return undefined;
    const { base } = this.publicUrl; // asked each time: the port may be known only once it is taken
    if (this.settings.production && !base.startsWith('https:')) return undefined;
    return `${base}/api/a2a/pushes/${this.issue(key)}`;
  }

  issue({ taskId, orgId }: PushKey): string {
    const ids = Buffer.from(`${taskId}${orgId}`.replaceAll('-', ''), 'hex');
    return Buffer.concat([ids, this.macOf(ids)]).toString('base64url');
  }

  /** Undefined for whatever is no token of this deployment. */
  open(token: string): PushKey | undefined {
    if (!shape.test(token)) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    // The last character has bits that mean nothing: one token has one spelling.
    if (bytes.toString('base64url') !== token) return undefined;
    const ids = bytes.subarray(0, 2 * idBytes);
    const mac = bytes.subarray(2 * idBytes);
    if (!this.keys.some((key) => timingSafeEqual(mac, this.macOf(ids, key)))) return undefined;
    return { taskId: uuidOf(ids.subarray(0, idBytes)), orgId: uuidOf(ids.subarray(idBytes)) };
  }

  private macOf(ids: Buffer, key = this.keys[0]): Buffer {
    return createHmac('sha256', key).update(ids).digest();
  }
}

function uuidOf(bytes: Buffer): string {
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
