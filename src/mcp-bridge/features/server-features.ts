import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { Cursors } from '../../platform/http/cursor.js';
import { upstreamName } from '../../protocol/mcp/tool-names.js';
import { UpstreamCalls, type PromptCall } from '../../upstreams/upstream-calls.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';
import { UpstreamsService, type ServerSnapshot } from '../../upstreams/upstreams.service.js';
import { PageFiller, type Page } from '../tools/list-page.js';
import { serverOfName } from '../tools/tool-catalogue.js';
import type { ListOptions } from '../tools/tool-call.types.js';

/** Key in `_meta`: the server of a resource or prompt; in the `_meta` of a read, the server to ask. */
const serverKey = 'dev.rialto/server';
const maxUri = 2_048;

/** The lists besides the tools, by the member that contains their items. */
export type FeatureList = 'resources' | 'resourceTemplates' | 'prompts';

interface Feature {
  readonly server: string;
  /** `<server> <key>`, the sort key of the list. */
  readonly position: string;
  /** Key of an item, listed once: when two servers have the same resource, the first one is asked for it. */
  readonly key: string;
  /** The server's item as JSON, with its server in `_meta`; the name of a prompt is the canonical one. */
  readonly text: string;
  readonly item: JsonObject;
}

type FeatureCatalogue = Readonly<Record<FeatureList, readonly Feature[]>>;

/**
 * Resources, resource templates and prompts of an org's MCP servers, listed when the caller may discover their server.
 */
@Injectable()
export class ServerFeatures {
  private readonly catalogues = new WeakMap<ServerSnapshot, FeatureCatalogue>();

  constructor(
    private readonly upstreams: UpstreamsService,
    private readonly calls: UpstreamCalls,
    private readonly cursors: Cursors,
  ) {}

  /**
   * Returns a page in a stable order. Throws `invalid_params` for a cursor of another org or of other list options.
   */
  async list(ctx: CallContext, list: FeatureList, options: ListOptions, cursor?: unknown): Promise<Page> {
    const { only, servers } = options;
    const scope = JSON.stringify([`mcp-${list}`, ctx.org.id, only ?? null, servers ? [...servers].sort() : null]);
    const [after] = cursor === undefined ? [] : this.cursors.decode(scope, typeof cursor === 'string' ? cursor : '', 1);
    const visible = new Map<string, boolean>();
    const listedKeys = new Set<string>();
    const page = new PageFiller();
    for (const { server, key, position, text, item } of (await this.catalogue(ctx))[list]) {
      if (!isWanted(options, server)) continue;
      if (!visible.has(server)) visible.set(server, await this.upstreams.mayDiscover(ctx, server));
      if (!visible.get(server) || listedKeys.has(key)) continue;
      listedKeys.add(key);
      if (after !== undefined && position <= after) continue;
      if (!page.add(only === undefined ? text : JSON.stringify(item), [position]))
        return { texts: page.texts, nextCursor: this.cursors.encode(scope, [...page.last!] as string[]) };
    }
    return { texts: page.texts };
  }

  /** Handles `resources/read`. Throws the errors of UpstreamCalls.readResource, and `invalid_params`. */
  async readResource(ctx: CallContext, options: ListOptions, params: unknown): Promise<JsonObject> {
    const { uri, servers } = await this.asked(ctx, options, params);
    return this.calls.readResource(ctx, servers, uri);
  }

  /** Returns the URI in the params, and the servers that may have this resource. Throws `invalid_params`. */
  async asked(
    ctx: CallContext,
    options: ListOptions,
    params: unknown,
  ): Promise<{ uri: string; servers: readonly RegisteredServer[] }> {
    const { uri, _meta } = objectOf(params);
    return { uri: requireUri(uri), servers: await this.candidates(ctx, options, _meta) };
  }

  async servers(ctx: CallContext): Promise<readonly RegisteredServer[]> {
    return (await this.currentServers(ctx)).servers;
  }

  /** Handles `prompts/get`. Throws the errors of UpstreamCalls.getPrompt, and `invalid_params`. */
  async prompt(ctx: CallContext, { only }: ListOptions, params: unknown): Promise<JsonObject> {
    const { name, arguments: args } = objectOf(params);
    if (args !== undefined && !isJsonObject(args)) throw invalidParams('params.arguments must be an object');
    return this.calls.getPrompt(ctx, await this.promptCalled(ctx, only, name), args);
  }

  /** Handles `completion/complete`. Throws the errors of UpstreamCalls, and `invalid_params`. */
  async complete(ctx: CallContext, options: ListOptions, params: unknown): Promise<JsonObject> {
    const { ref, argument, context, _meta } = objectOf(params);
    if (!isJsonObject(ref)) throw invalidParams('params.ref must be a prompt or a resource template');
    if (!isJsonObject(argument)) throw invalidParams('params.argument must be an object');
    const asked = { argument, ...(context !== undefined && { context }) };
    if (ref.type === 'ref/prompt')
      return this.calls.completePrompt(ctx, await this.promptCalled(ctx, options.only, ref.name), asked);
    if (ref.type === 'ref/resource')
      return this.calls.completeUri(ctx, await this.candidates(ctx, options, _meta), requireUri(ref.uri), asked);
    throw invalidParams('params.ref.type must be ref/prompt or ref/resource');
  }

  private async promptCalled(ctx: CallContext, only: string | undefined, name: unknown): Promise<PromptCall> {
    if (typeof name !== 'string' || name === '' || name.length > 256)
      throw invalidParams('the name of a prompt is missing');
    const canonical = only === undefined ? name : upstreamName(only, name);
    const { servers } = await this.currentServers(ctx);
    const target = servers.flatMap(({ prompts }) => prompts).find((prompt) => prompt.canonical === canonical);
    return { target, canonical, serverId: target?.server.row.serverId ?? only ?? serverOfName(name) };
  }

  private async candidates(ctx: CallContext, options: ListOptions, meta: unknown): Promise<RegisteredServer[]> {
    const hint = isJsonObject(meta) ? meta[serverKey] : undefined;
    const { servers } = await this.currentServers(ctx);
    return servers.filter(
      ({ row }) => isWanted(options, row.serverId) && (hint === undefined || row.serverId === hint),
    );
  }

  private async currentServers(ctx: CallContext): Promise<ServerSnapshot> {
    return this.upstreams.peekFor(ctx) ?? (await this.upstreams.snapshotFor(ctx));
  }

  private async catalogue(ctx: CallContext): Promise<FeatureCatalogue> {
    const snapshot = await this.currentServers(ctx);
    let known = this.catalogues.get(snapshot);
    if (!known) this.catalogues.set(snapshot, (known = catalogueOf(snapshot)));
    return known;
  }
}

function catalogueOf({ servers }: ServerSnapshot): FeatureCatalogue {
  const each = servers.map(featuresOf);
  const all = (list: FeatureList): Feature[] =>
    each.flatMap((features) => features[list]).sort((a, b) => (a.position < b.position ? -1 : 1));
  return { resources: all('resources'), resourceTemplates: all('resourceTemplates'), prompts: all('prompts') };
}

/** Catalogues by server: the snapshots of one org differ by caller, but share their servers. */
const featuresByServer = new WeakMap<RegisteredServer, FeatureCatalogue>();

function featuresOf(server: RegisteredServer): FeatureCatalogue {
  const { row, resources, templates, prompts } = server;
  const known = featuresByServer.get(server) ?? {
    resources: resources.map((item) => featureOf(row.serverId, item.uri, item)),
    resourceTemplates: templates.map((item) => featureOf(row.serverId, item.uriTemplate, item)),
    prompts: prompts.map(({ canonical, prompt }) => featureOf(row.serverId, canonical, prompt, { name: canonical })),
  };
  featuresByServer.set(server, known);
  return known;
}

function featureOf(server: string, key: string, item: JsonObject, changed?: JsonObject): Feature {
  const _meta = { ...(item._meta as JsonObject | undefined), [serverKey]: server };
  return { server, position: `${server} ${key}`, key, item, text: JSON.stringify({ ...item, ...changed, _meta }) };
}

function isWanted({ only, agents, servers }: ListOptions, server: string): boolean {
  if (only !== undefined) return only === server;
  return servers?.has(server) ?? agents === undefined;
}

function objectOf(params: unknown): JsonObject {
  return isJsonObject(params) ? params : {};
}

/** Checks the URI of a resource. Throws `invalid_params`. */
export function requireUri(uri: unknown): string {
  if (typeof uri === 'string' && uri !== '' && !uri.includes('\0') && Buffer.byteLength(uri) <= maxUri) return uri;
  throw invalidParams(`the URI of a resource is missing, or longer than ${maxUri} bytes`);
}

function invalidParams(message: string): RialtoError {
  return new RialtoError('invalid_params', { message });
}
