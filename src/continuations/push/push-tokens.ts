import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto';
import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { Vault } from '../../platform/secrets/vault.js';
import type { RegisteredAgent } from '../../registry/registry.types.js';

/** Ids of the task that a remote agent may push for. */
export interface PushKey {
  readonly taskId: string;
  readonly orgId: string;
}

const tokenPattern = /^[A-Za-z0-9_-]{86}$/;
const idBytes = 16;

/**
 * URLs that remote agents push to, one for each task: `/api/a2a/pushes/<base64url of task id, org id and
 * hmac-sha256>`. The key is derived from the key of the deployment. No token is stored: the HMAC proves a token, and
 * it is valid for its own task only.
 */
@Injectable()
export class PushTokens {
  /** Valid keys; the first one signs. */
  private readonly keys: readonly [KeyObject, ...KeyObject[]];

  constructor(
    vault: Vault,
    private readonly publicUrl: PublicUrl,
    @Inject(SETTINGS) private readonly settings: Pick<Settings, 'production'>,
  ) {
    this.keys = vault.deriveAll('remote-push');
  }

  /**
   * URL that an agent may push to. Undefined for an agent without push notifications, and in production without a
   * public https URL.
   */
  urlFor({ card }: Pick<RegisteredAgent, 'card'>, key: PushKey): string | undefined {
    if (card?.capabilities.pushNotifications !== true) return undefined;
    const { base } = this.publicUrl; // read for each call: the port may be known only after listen
    if (this.settings.production && !base.startsWith('https:')) return undefined;
    return `${base}/api/a2a/pushes/${this.issue(key)}`;
  }

  issue({ taskId, orgId }: PushKey): string {
    const ids = Buffer.from(`${taskId}${orgId}`.replaceAll('-', ''), 'hex');
    return Buffer.concat([ids, this.macOf(ids)]).toString('base64url');
  }

  /** Decodes a token; undefined for text that is not a token of this deployment. */
  openToken(token: string): PushKey | undefined {
    if (!tokenPattern.test(token)) return undefined;
    const bytes = Buffer.from(token, 'base64url');
    // The last character has unused bits: reject all other spellings of one token.
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
