import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { isAuthConfigured, SETTINGS, type Settings } from '../platform/config/settings.js';
import { readText } from '../platform/http/body.js';
import type { DoorRequest, DoorResponse, HotRoute } from '../platform/http/http.types.js';
import { sendProblem } from '../platform/http/problem.js';
import { PublicUrl } from '../platform/http/public-url.js';
import { AccessTokens } from './auth/access-tokens.js';
import { readTokenRequest, type TokenFault } from './auth/token-request.js';
import { TokenRefusals } from './auth/token-refusals.js';

const maxBodyBytes = 8_192;
const tokenPath = '/oauth/token';
const metadataPath = '/.well-known/oauth-authorization-server';

/** Token endpoint for programs: exchanges an API key for a short token (OAuth 2.0, client credentials; RI-50). */
@Injectable()
export class TokenDoor {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly tokens: AccessTokens,
    private readonly refusals: TokenRefusals,
    private readonly publicUrl: PublicUrl,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    return [
      this.route(tokenPath, ['POST'], 'Access token of 15 minutes for an API key (client credentials)', (...given) =>
        this.issueToken(...given),
      ),
      this.route(metadataPath, ['GET'], 'Metadata of the token endpoint (RFC 8414)', (_, response) =>
        Promise.resolve(this.showMetadata(response)),
      ),
    ];
  }

  private route(
    template: string,
    methods: readonly string[],
    summary: string,
    answer: (request: DoorRequest, response: DoorResponse) => Promise<void>,
  ): HotRoute {
    return {
      template,
      methods,
      summary,
      match: (path) => (path === template ? {} : undefined),
      handle: async (request, response) => {
        try {
          await answer(request, response);
        } catch (thrown) {
          const error = RialtoError.from(thrown);
          if (error.code === 'internal') throw thrown;
          sendProblem(request, response, error.code, error);
        }
      },
    };
  }

  private async issueToken(request: DoorRequest, response: DoorResponse): Promise<void> {
    if (!isAuthConfigured(this.settings)) throw new RialtoError('auth_not_configured');
    const asked = readTokenRequest(await readText(request, maxBodyBytes), request.headers);
    if (!asked.ok) return refuse(response, asked.error, asked.description);
    const issued = await this.tokens.issue(asked.clientId, asked.clientSecret);
    if (issued) {
      const body = { access_token: issued.token, token_type: 'Bearer', expires_in: issued.expiresIn };
      return send(response, 200, body);
    }
    this.refusals.countRefusal();
    refuse(response, 'invalid_client', 'the id and the secret are not those of a valid API key');
  }

  private showMetadata(response: DoorResponse): void {
    const { base } = this.publicUrl;
    send(response, 200, {
      issuer: base,
      token_endpoint: `${base}${tokenPath}`,
      jwks_uri: `${base}/.well-known/jwks.json`,
      grant_types_supported: ['client_credentials'],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post'],
    });
  }
}

/** Answers as RFC 6749 section 5.2 says. */
function refuse(response: DoorResponse, error: TokenFault, description: string): void {
  const isClient = error === 'invalid_client';
  if (isClient) response.setHeader('WWW-Authenticate', 'Basic realm="rialto"');
  send(response, isClient ? 401 : 400, { error, error_description: description });
}

function send(response: DoorResponse, status: number, body: object): void {
  response.writeHead(status, { 'Content-Type': 'application/json; charset=utf-8', 'Cache-Control': 'no-store' });
  response.end(JSON.stringify(body));
}
