import { hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { systemClock } from '../../kernel/clock.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { SigningKeys } from '../../platform/secrets/signing-keys.js';
import type { StoredConfig } from './push-config.store.js';

const lifetimeSeconds = 300;

/**
 * Issues tokens that prove the origin of a delivery, for receivers with the scheme Bearer and no credentials: a JWT
 * that `/.well-known/jwks.json` verifies, for one attempt (A2A, "Streaming and asynchronous operations", push
 * notification security).
 */
@Injectable()
export class WebhookTokens {
  constructor(
    private readonly keys: SigningKeys,
    private readonly publicUrl: PublicUrl,
  ) {}

  /**
   * Issues a token. Claims: `iss` this gateway, `aud` the origin of the receiver, `iat`, `exp`, `jti` the `webhook-id`,
   * `taskId`, `request_body_sha256` in hex.
   */
  async issue({ id, config, body }: { id: string; config: StoredConfig; body: string }): Promise<string> {
    const { kid, sign } = await this.keys.current();
    const iat = Math.floor(systemClock.now() / 1_000);
    const claims = {
      iss: this.publicUrl.base,
      aud: new URL(config.url).origin,
      iat,
      exp: iat + lifetimeSeconds,
      jti: id,
      taskId: config.taskId,
      request_body_sha256: hash('sha256', body, 'hex'),
    };
    const content = [{ alg: 'EdDSA', kid, typ: 'JWT' }, claims]
      .map((part) => base64url(JSON.stringify(part)))
      .join('.');
    return `${content}.${sign(Buffer.from(content))}`;
  }
}

function base64url(text: string): string {
  return Buffer.from(text).toString('base64url');
}
