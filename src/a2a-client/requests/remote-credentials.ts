import { createHash } from 'node:crypto';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { systemClock, type Clock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject } from '../../kernel/json.js';
import { assertNever } from '../../kernel/never.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import type { SafeFetch } from '../../platform/http/outbound/safe-fetch.js';
import type { Credential } from '../../registry/registry.types.js';

type ClientCredentials = Extract<Credential, { type: 'oauth2' }>;

interface Token {
  /** Hash of the credential that the token was issued for: a changed credential gets a new token. */
  readonly source: string;
  readonly value: Promise<string>;
  /** Time on the monotonic clock; Infinity while the token request is running. */
  staleAt: number;
}

const tokenDeadlineMs = 10_000;
const maxTokenBytes = 65_536;
const earlyMs = 30_000;
/** Lifetime of a token when the server states none (RFC 6749 section 5.1). */
const defaultLifetimeMs = 300_000;
const maxTokens = 1_000;

/**
 * Turns credentials into headers immediately before a request. Tokens of OAuth client credentials (RFC 6749 section
 * 4.4) are cached for each agent until 30 s before they expire, requested once for all waiting calls, and dropped by
 * `forgetToken`. Credentials are never logged or put into errors: errors carry only the status of the token endpoint.
 */
export class RemoteCredentials {
  private readonly tokens = new BoundedMap<string, Token>(maxTokens);

  constructor(
    private readonly client: SafeFetch,
    private readonly clock: Clock = systemClock,
  ) {}

  /**
   * Returns the header that authenticates the gateway to the agent. Throws `url_not_allowed`, or `remote_transport`
   * with `data.tokenStatus`.
   */
  async headers(agentId: string, credential: Credential): Promise<Record<string, string>> {
    switch (credential.type) {
      case 'bearer':
        return { authorization: `Bearer ${credential.token}` };
      case 'apiKey':
        return { [credential.header.toLowerCase()]: credential.value };
      case 'oauth2':
        return { authorization: `Bearer ${await this.token(agentId, credential)}` };
      default:
        return assertNever(credential);
    }
  }

  /** Drops the agent's token after a 401; returns true when there was one, so that another try may succeed. */
  forgetToken(agentId: string): boolean {
    return this.tokens.delete(agentId);
  }

  private token(agentId: string, credential: ClientCredentials): Promise<string> {
    const source = createHash('sha256').update(JSON.stringify(credential)).digest('base64');
    const known = this.tokens.get(agentId);
    if (known?.source === source && known.staleAt > this.clock.elapsed()) return known.value;
    const token: Token = {
      source,
      staleAt: Infinity,
      value: this.fetchToken(credential, (ms) => this.keepToken(token, ms)),
    };
    token.value.catch(() => {
      if (this.tokens.get(agentId) === token) this.tokens.delete(agentId);
    });
    this.tokens.set(agentId, token);
    return token.value;
  }

  private keepToken(token: Token, lifeMs: number): void {
    token.staleAt = this.clock.elapsed() + lifeMs - earlyMs;
  }

  private async fetchToken(credential: ClientCredentials, setLifetime: (ms: number) => void): Promise<string> {
    const { tokenUrl, clientId, clientSecret, scope } = credential;
    const form = new URLSearchParams({ grant_type: 'client_credentials', ...(scope && { scope }) });
    const response = await this.client.request({
      method: 'POST',
      url: tokenUrl,
      headers: {
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
        authorization: basic(clientId, clientSecret),
      },
      body: form.toString(),
      deadlineMs: tokenDeadlineMs,
      maxBytes: maxTokenBytes,
    });
    const parsed = parseJson(response.body.toString('utf8'));
    const body = parsed.ok && isJsonObject(parsed.value) ? parsed.value : {};
    const { access_token: token, token_type: type = 'Bearer', expires_in: life } = body;
    if (response.status !== 200 || typeof token !== 'string' || !isBearer(type)) throw noToken(response.status);
    const seconds = Number(life);
    setLifetime(life !== undefined && seconds >= 0 ? seconds * 1_000 : defaultLifetimeMs);
    return token;
  }
}

/** Form-encodes both halves before it joins them (RFC 6749 section 2.3.1). */
function basic(clientId: string, clientSecret: string): string {
  const [id, secret] = [clientId, clientSecret].map((text) => new URLSearchParams({ '': text }).toString().slice(1));
  return `Basic ${Buffer.from(`${id}:${secret}`).toString('base64')}`;
}

function isBearer(type: unknown): boolean {
  return typeof type === 'string' && type.toLowerCase() === 'bearer';
}

function noToken(tokenStatus: number): RialtoError {
  return new RialtoError('remote_transport', {
    message: 'the token endpoint of the remote agent gave no token',
    data: { tokenStatus },
  });
}
