import { Inject, Injectable } from '@nestjs/common';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import type { HotRoute } from '../../platform/http/http.types.js';
import { sendProblem } from '../../platform/http/problem.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import { etagOf, sendValidated } from '../../platform/http/validated-answer.js';

const wellKnown = '/.well-known/oauth-protected-resource';
const methods = ['GET', 'HEAD', 'OPTIONS'];
/** Clients in browsers read the document too. */
const cors = { 'Access-Control-Allow-Origin': '*' };
const preflight = {
  ...cors,
  'Access-Control-Allow-Methods': methods.join(', '),
  'Access-Control-Allow-Headers': 'Authorization, MCP-Protocol-Version, If-None-Match',
  'Access-Control-Max-Age': '86400',
};

/** Tells an MCP client without a token which authorization server issues one (RFC 9728; MCP, authorization). */
@Injectable()
export class ResourceMetadataDoor {
  private readonly servers: readonly string[];

  constructor(
    @Inject(SETTINGS) settings: Settings,
    private readonly publicUrl: PublicUrl,
  ) {
    // Each entry has the form `org=issuer|jwks-url`.
    const issuers = settings.RIALTO_JWKS.map((entry) => entry.slice(entry.indexOf('=') + 1).split('|')[0]!);
    this.servers = [...new Set(issuers)];
  }

  /** Returns the `WWW-Authenticate` value for a 401 of the MCP doors. @param path path of the door. */
  challenge(path: string): string {
    const where = this.servers.length === 0 ? '' : `, resource_metadata="${this.publicUrl.base}${wellKnown}${path}"`;
    return `Bearer realm="rialto"${where}`;
  }

  /** Returns the rows for the route table of the front door: one document for all MCP doors. */
  routes(): HotRoute[] {
    return [
      this.route(wellKnown, (path) => path === wellKnown),
      this.route(`${wellKnown}/mcp`, (path) => path === `${wellKnown}/mcp`),
      this.route(`${wellKnown}/mcp/servers/{id}`, (path) =>
        /^\/mcp\/servers\/[a-z0-9_-]{1,32}$/.test(path.startsWith(wellKnown) ? path.slice(wellKnown.length) : ''),
      ),
    ];
  }

  private route(template: string, isAt: (path: string) => boolean): HotRoute {
    return {
      template,
      methods,
      summary: 'Which authorization servers give tokens for the MCP doors (RFC 9728)',
      match: (path) => (isAt(path) ? {} : undefined),
      handle: (request, response) => {
        if (request.method === 'OPTIONS') response.writeHead(204, preflight).end();
        else if (this.servers.length === 0) sendProblem(request, response, 'not_found');
        else {
          const body = JSON.stringify(this.document());
          sendValidated(
            request,
            response,
            { body, etag: etagOf(body) },
            { ...cors, 'Cache-Control': 'public, max-age=300' },
          );
        }
        return Promise.resolve();
      },
    };
  }

  private document(): object {
    return {
      resource: `${this.publicUrl.base}/mcp`,
      authorization_servers: this.servers,
      bearer_methods_supported: ['header'],
      resource_name: 'Rialto',
    };
  }
}
