import type { Settings } from '../../platform/config/settings.js';
import type { SecurityScheme } from '../../protocol/a2a/model.js';

type Relevant = Pick<Settings, 'A2A_SECRET' | 'production' | 'RIALTO_DEV_ANONYMOUS' | 'legacyBearer'>;

/** Returns whether the deployment has its own secret for tokens (AN-47). */
export function hasConfiguredA2ASecret({ A2A_SECRET }: Pick<Settings, 'A2A_SECRET'>): boolean {
  return A2A_SECRET !== undefined;
}

/**
 * Returns whether cards name the scheme `jwtBearer`: a secret is set, or it is production, which requires one
 * (AN-47).
 */
export function shouldAdvertiseJwtA2AAuth(settings: Pick<Settings, 'A2A_SECRET' | 'production'>): boolean {
  return hasConfiguredA2ASecret(settings) || settings.production;
}

/**
 * Returns the security schemes of a card. The gateway sets them, agents cannot (RI-12). One scheme is sufficient for
 * a call. The result is empty when callers need no token.
 */
export function securitySchemesOf(settings: Relevant, hasStaticBearer: boolean): Record<string, SecurityScheme> {
  if (settings.RIALTO_DEV_ANONYMOUS) return {};
  const jwt = shouldAdvertiseJwtA2AAuth(settings);
  const key = hasStaticBearer || settings.legacyBearer !== undefined;
  return {
    ...(jwt && { jwtBearer: bearer('JWT') }),
    ...(key && { apiKey: bearer() }),
    ...(!jwt && !key && { bearer: bearer() }),
  };
}

function bearer(bearerFormat?: string): SecurityScheme {
  return { httpAuthSecurityScheme: { scheme: 'bearer', ...(bearerFormat !== undefined && { bearerFormat }) } };
}
