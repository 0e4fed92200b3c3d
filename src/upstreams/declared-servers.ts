import { isDeepStrictEqual } from 'node:util';
import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import type { OrgId } from '../kernel/ids.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { TxRunner, type Tx } from '../platform/database/tx.js';
import { invalidBody } from '../platform/http/request-checks.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import { ServerChanges } from './catalog/server-changes.js';
import type { McpServerEntity } from './storage/mcp-server.entity.js';
import { nothingYet } from './storage/offer.js';
import { columnsOf } from './storage/server-columns.js';
import { endpointFrom, type Endpoint } from './storage/sealed-endpoints.js';
import { UpstreamStore } from './storage/upstream.store.js';
import { RegisterServer } from './upstream.types.js';

/**
 * Reconciles the MCP servers of `rialto.config.json` and `mcp.config.json` with the table: inserts missing servers,
 * updates changed ones, and deletes those no longer declared. A declared server has a row even while it cannot be
 * reached; the gateway reads its offer as soon as it can connect.
 */
@Injectable()
export class DeclaredServers {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly store: UpstreamStore,
    private readonly changes: ServerChanges,
    private readonly txs: TxRunner,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Reconciles the declared servers of an org. Idempotent: the same files give the same rows, also when several
   * processes reconcile at once.
   */
  async reconcile(org: OrgId): Promise<void> {
    const declared = new Map(this.settings.configFile.mcpServers.map((server) => [server.id, server]));
    await this.withLock(org, async (tx) => {
      const rows = await this.store.findAll(org, tx);
      for (const row of rows.filter(({ source, serverId }) => source === 'config' && !declared.has(serverId)))
        await this.changes.remove(tx, row);
    });
    for (const [id, server] of declared) {
      try {
        const { isAgent: _card, ...members } = server;
        const wanted = parseServer(members);
        await this.withLock(org, (tx) => this.align(tx, org, { ...wanted, id }));
      } catch (error) {
        const known = RialtoError.from(error);
        if (known.code === 'internal') throw known;
        this.log.error({ server: id, code: known.code }, `a declared MCP server was left out: ${known.message}`);
      }
    }
  }

  private withLock(org: OrgId, work: (tx: Tx) => Promise<void>): Promise<void> {
    return this.txs.run(async (tx) => {
      await this.store.lock(tx, org);
      await work(tx);
    });
  }

  /**
   * Inserts or updates one declared server; the caller holds the lock. Throws `slug_taken` when a server of this id was
   * registered through the API, and what the store throws.
   */
  private async align(tx: Tx, org: OrgId, wanted: RegisterServer & { readonly id: string }): Promise<void> {
    const { id: serverId } = wanted;
    const columns = columnsOf(wanted);
    const endpoint = declaredEndpoint(wanted);
    const row = await this.store.find(org, serverId, tx);
    if (row?.source === 'api')
      throw new RialtoError('slug_taken', {
        message: 'an MCP server with this id was already registered through the API; rename or remove one of the two',
      });
    const described = { name: wanted.name ?? serverId, ...columns };
    if (!row) {
      const server = { serverId, source: 'config' as const, offer: nothingYet, ...described };
      return void (await this.changes.add(tx, org, server, endpoint));
    }
    if (this.changes.isMoved(row, endpoint))
      await this.changes.change(tx, row, { ...described, offer: nothingYet }, endpoint);
    else if (!isDeepStrictEqual(pick(row, described), described)) await this.changes.change(tx, row, described);
  }
}

/** Parses a declared server. Throws `invalid_params` for values that the API would refuse too. */
function parseServer(server: object): RegisterServer {
  const checked = RegisterServer.safeParse(server);
  if (!checked.success) throw invalidBody(checked.error.issues);
  return checked.data;
}

function declaredEndpoint(wanted: RegisterServer): Endpoint {
  const endpoint = endpointFrom(wanted);
  return endpoint.transport === 'stdio' ? { ...endpoint, isDeclared: true } : endpoint;
}

function pick<Wanted extends object>(row: McpServerEntity, wanted: Wanted): object {
  return Object.fromEntries(Object.keys(wanted).map((key) => [key, row[key as keyof McpServerEntity]]));
}
