import { toNodeHandler } from '@modelcontextprotocol/node';
import {
  createMcpHandler,
  Server,
  type Implementation,
  type McpHttpHandler,
  type McpRequestContext,
  type ServerContext,
} from '@modelcontextprotocol/server';
import { ProtocolError } from '@modelcontextprotocol/server';
import { Injectable } from '@nestjs/common';
import { BoundedMap } from '../../kernel/bounded-map.js';
import { callerOf, type CallContext } from '../../kernel/call-context.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import { z } from 'zod';
import type { DoorRequest, DoorResponse } from '../../platform/http/http.types.js';
import { mcpError } from '../../protocol/mcp/errors.js';
import { withExactIds } from './exact-ids.js';
import { methodsOf } from './server-description.js';
import { McpDispatch, type McpExchange, type McpResponse } from './mcp-dispatch.js';
import { modernText, resultObject } from './mcp-result.js';
import { McpReply } from './mcp-reply.js';
import { takesTasks } from '../tools/mcp-task.js';
import { McpTasks } from '../tools/mcp-tasks.js';
import { modernPeer } from './modern-peer.js';
import { withHeartbeat, type RelayProgress } from './progress.js';
import { McpStreams } from './mcp-streams.js';
import { ResourceWatches } from '../sessions/resource-watches.js';
import { watchReader } from './unread-answers.js';

const maxHandlers = 1_000;
/**
 * Error codes with HTTP status 400 (specification 2026-07-28, HeaderMismatch and
 * MissingRequiredClientCapabilityError).
 */
const badRequests: readonly unknown[] = [-32_020, -32_021];
/** Lists that may change, in the names of the SDK. */
export type ChangingList = 'tools' | 'resources' | 'prompts';

/** Accepts any params: tasks check their params themselves. */
const anyParams = z.looseObject({});

interface DoorHandler {
  readonly org: string;
  /** The caller of the streams that it serves. */
  readonly caller: string;
  /** Id of the only server of its door. */
  readonly only?: string;
  readonly handler: McpHttpHandler;
  readonly serve: ReturnType<typeof toNodeHandler>;
}

/**
 * Serves the 2026-07-28 revision with the official SDK: discovery, subscriptions, header checks and every refusal. It
 * has one handler for each org and door, and one for the streams of each caller, so that a change is sent only to the
 * callers it concerns.
 */
@Injectable()
export class McpModern {
  private readonly handlers = new BoundedMap<string, DoorHandler>(maxHandlers, ({ handler }) => {
    handler.close().catch(() => undefined);
  });
  /** Handlers of callers with streams, with the number of open streams. */
  private readonly listening = new Map<string, DoorHandler & { streams: number }>();

  constructor(
    private readonly tasks: McpTasks,
    private readonly dispatch: McpDispatch,
    private readonly streams: McpStreams,
    private readonly watches: ResourceWatches,
  ) {}

  /** Throws `rate_limited` when the caller has too many subscriptions: they count as standing streams. */
  async serve(exchange: McpExchange, request: DoorRequest, response: DoorResponse, body: unknown): Promise<void> {
    const isStream = isJsonObject(body) && body.method === 'subscriptions/listen';
    if (isStream) {
      this.streams.hold(exchange.ctx, response);
      const release = await this.watches.watchForStream(exchange.ctx, exchange.options, watchedIn(body), () =>
        response.destroy(),
      );
      if (response.destroyed) return release();
      response.once('close', release);
    }
    watchReader(response);
    const auth = { token: '', clientId: exchange.ctx.principal.id, scopes: [], extra: { exchange } };
    const { serve } = isStream ? this.listenerOf(exchange, response) : this.handlerOf(exchange);
    await serve(Object.assign(request, { auth }), response, body);
  }

  /**
   * Serves `tools/list` and `tools/call` without the SDK, because its server for each request costs about one
   * millisecond.
   */
  async serveHot(exchange: McpExchange, request: DoorRequest, response: DoorResponse, body: JsonObject): Promise<void> {
    const { id, method, params } = body as unknown as { id: string | number; method: string; params: JsonObject };
    const reply = new McpReply(request, response);
    const { progressToken } = params._meta as JsonObject;
    const notify = (progress: JsonObject): void => reply.sendNotification('notifications/progress', progress);
    const respond = (relay: RelayProgress): Promise<McpResponse> => {
      const peer = modernPeer(
        params,
        exchange.headers,
        (notification, more) => reply.sendNotification(notification, more),
        relay,
      );
      const within = { ...exchange, ctx: { ...exchange.ctx, peer }, takesTasks: mayTake(exchange, params) };
      return this.dispatch.respond(within, { id, method, params }, (result) =>
        modernText(result, exchange.description),
      );
    };
    const token = method === 'tools/call' ? progressToken : undefined;
    const { text, errorCode, status } = await reply.whileWorking(() => withHeartbeat(token, notify, respond));
    reply.end(text, status ?? (badRequests.includes(errorCode) ? 400 : 200));
  }

  /** @param caller the only caller that is notified; all callers when absent. */
  listsChanged(org: string, lists: readonly ChangingList[], caller?: string): void {
    for (const { handler } of this.handlersOf(org, caller))
      for (const list of lists) handler.notify[`${list}Changed`]();
  }

  /**
   * Notifies the streams that named the resource of this server: other streams may have named a resource with the same
   * URI of another server.
   */
  resourceUpdated(org: string, server: string, uri: string, caller?: string): void {
    for (const listening of this.handlersOf(org, caller))
      if (this.watches.isNamed(listening, server, uri)) listening.handler.notify.resourceUpdated(uri);
  }

  async close(): Promise<void> {
    const all = [...this.handlers.values(), ...this.listening.values()];
    await Promise.all(all.map(({ handler }) => handler.close()));
  }

  private handlersOf(org: string, caller: string | undefined): DoorHandler[] {
    const listening = [...this.listening.values()].filter((one) => one.org === org);
    return listening.filter((one) => caller === undefined || one.caller === caller);
  }

  private listenerOf(exchange: McpExchange, response: DoorResponse): DoorHandler {
    const { ctx, options } = exchange;
    const key = `${ctx.org.id} ${options.only ?? ''} ${callerOf(ctx.principal)}`;
    const known = this.listening.get(key) ?? { ...this.newHandler(exchange), streams: 0 };
    this.listening.set(key, known);
    known.streams++;
    response.once('close', () => {
      if (--known.streams > 0) return;
      this.listening.delete(key);
      known.handler.close().catch(() => undefined);
    });
    return known;
  }

  private handlerOf(exchange: McpExchange): DoorHandler {
    const { ctx, options } = exchange;
    const key = `${ctx.org.id} ${options.only ?? ''}`;
    let known = this.handlers.get(key);
    if (!known) this.handlers.set(key, (known = this.newHandler(exchange)));
    return known;
  }

  private newHandler({ ctx: { org, principal }, options: { only } }: McpExchange): DoorHandler {
    const handler = createMcpHandler((context) => this.serverFor(context), { legacy: 'reject' });
    return { org: org.id, caller: callerOf(principal), only, handler, serve: toNodeHandler(withExactIds(handler)) };
  }

  private serverFor({ authInfo }: McpRequestContext): Server {
    const { exchange } = authInfo!.extra as unknown as { exchange: McpExchange };
    const { serverInfo, capabilities, extensions, instructions } = exchange.description;
    const server = new Server(serverInfo as unknown as Implementation, {
      capabilities: { ...capabilities, ...(extensions && { extensions: extensions as never }) },
      instructions,
    });
    for (const method of methodsOf(exchange.description))
      server.setRequestHandler(method as 'tools/call', async ({ params }, { mcpReq }) => {
        const given = paramsOf(params, mcpReq);
        const token = method === 'tools/call' ? (given._meta as JsonObject).progressToken : undefined;
        const notify = (notification: string, more: JsonObject): void =>
          void mcpReq.notify({ method: notification, params: more }).catch(() => undefined);
        const progress = (more: JsonObject): void => notify('notifications/progress', more);
        try {
          const result = await withHeartbeat(token, progress, (relay) => {
            const ctx = {
              ...exchange.ctx,
              signal: mcpReq.signal,
              peer: modernPeer(given, exchange.headers, notify, relay),
            };
            const within = { ...exchange, ctx, takesTasks: mayTake(exchange, given) };
            return this.dispatch.result(within, { method, params: given });
          });
          return resultObject(result!) as never;
        } catch (thrown) {
          throw protocolError(thrown);
        }
      });
    if (extensions) this.addTaskMethods(server, exchange.ctx);
    return server;
  }

  /** Adds the methods of the tasks extension; the SDK moves the answers of `tasks/update` out of the params. */
  private addTaskMethods(server: Server, ctx: CallContext): void {
    const methods: Record<string, (params: unknown, answers: unknown) => Promise<JsonObject>> = {
      'tasks/get': (params) => this.tasks.get(ctx, params),
      'tasks/cancel': (params) => this.tasks.cancel(ctx, params),
      'tasks/update': (params, answers) => this.tasks.update(ctx, params, answers),
    };
    for (const [method, work] of Object.entries(methods))
      server.setRequestHandler(method, { params: anyParams }, async (params, { mcpReq }) => {
        try {
          return await work(params, mcpReq.inputResponses);
        } catch (thrown) {
          throw protocolError(thrown);
        }
      });
  }
}

/** True when the client takes tasks and the door offers the methods to read them. */
function mayTake({ description }: McpExchange, params: JsonObject): boolean {
  return description.extensions !== undefined && takesTasks(params);
}

/** Returns the resources that a stream subscribes to. */
function watchedIn({ params }: JsonObject): readonly Json[] {
  const wanted =
    isJsonObject(params) && isJsonObject(params.notifications) && params.notifications.resourceSubscriptions;
  return Array.isArray(wanted) ? wanted : [];
}

/** Rebuilds the params as the client sent them: the SDK moves out the members that belong to the whole request. */
function paramsOf(
  params: object | undefined,
  { envelope, inputResponses, requestState }: ServerContext['mcpReq'],
): JsonObject {
  const given = (params ?? {}) as JsonObject;
  const state = requestState();
  return {
    ...given,
    ...(inputResponses && { inputResponses: inputResponses as JsonObject }),
    ...(state !== undefined && { requestState: state as Json }),
    _meta: { ...(given._meta as JsonObject | undefined), ...(envelope as JsonObject | undefined) },
  };
}

function protocolError(thrown: unknown): ProtocolError {
  const { code, message, data } = mcpError(thrown);
  return ProtocolError.fromError(code, message, data);
}
