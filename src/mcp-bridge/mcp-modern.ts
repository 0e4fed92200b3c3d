import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, Server, type McpHttpHandler, type McpRequestContext } from '@modelcontextprotocol/server';
import { ProtocolError } from '@modelcontextprotocol/server';
import { Injectable } from '@nestjs/common';
import type { CallContext } from '../kernel/call-context.js';
import { isJsonObject, type JsonObject } from '../kernel/json.js';
import { z } from 'zod';
import type { DoorRequest, DoorResponse } from '../platform/http/http.types.js';
import { mcpError } from '../protocol/mcp/errors.js';
import {
  instructions,
  McpDispatch,
  modernCapabilities,
  modernResult,
  serverInfo,
  type McpExchange,
} from './mcp-dispatch.js';
import { McpReply } from './mcp-reply.js';
import { takesTasks } from './mcp-task.js';
import { McpTasks } from './mcp-tasks.service.js';
import { withHeartbeat } from './progress.js';
import { McpStreams } from './mcp-streams.js';
import { pageText } from './tool-page.js';
import { readToolCall } from './tools.service.js';
import { ToolSet } from './tool-set.js';
import { watchReader } from './unread-answers.js';

const maxOrgs = 1_000;
/** Tasks check what they are given themselves. */
const anyParams = z.looseObject({});

interface OrgHandler {
  readonly handler: McpHttpHandler;
  readonly serve: ReturnType<typeof toNodeHandler>;
}

/**
 * The 2026-07-28 revision by the official SDK: discovery, subscriptions, header checks and every refusal. One handler per
 * org, so that a change of one org's tools is told to that org's subscribers only.
 */
@Injectable()
export class McpModern {
  private readonly handlers = new Map<string, OrgHandler>();

  constructor(
    private readonly tools: ToolSet,
    private readonly tasks: McpTasks,
    private readonly dispatch: McpDispatch,
    private readonly streams: McpStreams,
  ) {}

  /** Throws `rate_limited` for one subscription too many: they count as standing streams do. */
  async serve(exchange: McpExchange, request: DoorRequest, response: DoorResponse, body: unknown): Promise<void> {
    if (isJsonObject(body) && body.method === 'subscriptions/listen') this.streams.hold(exchange.ctx, response);
    watchReader(response);
    const auth = { token: '', clientId: exchange.ctx.principal.id, scopes: [], extra: { exchange } };
    await this.handlerOf(exchange.ctx.org.id).serve(Object.assign(request, { auth }), response, body);
  }

  /** `tools/list` and `tools/call` without the SDK, whose server per request costs about a millisecond. */
  async serveHot(exchange: McpExchange, request: DoorRequest, response: DoorResponse, body: JsonObject): Promise<void> {
    const { id, method, params } = body as unknown as { id: string | number; method: string; params: JsonObject };
    const reply = new McpReply(request, response);
    const notify = (progress: JsonObject): void => reply.notify('notifications/progress', progress);
    const { progressToken } = params._meta as JsonObject;
    const taking = { ...exchange, takesTasks: takesTasks(params) };
    const respond = () => this.dispatch.respond(taking, { id, method, params }, modernResult);
    reply.end(await withHeartbeat(method === 'tools/call' ? progressToken : undefined, notify, respond));
  }

  toolsChanged(org: string): void {
    this.handlers.get(org)?.handler.notify.toolsChanged();
  }

  async close(): Promise<void> {
    await Promise.all([...this.handlers.values()].map(({ handler }) => handler.close()));
  }

  private handlerOf(org: string): OrgHandler {
    let known = this.handlers.get(org);
    if (!known) {
      const handler = createMcpHandler((context) => this.serverFor(context), { legacy: 'reject' });
      known = { handler, serve: toNodeHandler(handler) };
      this.handlers.set(org, known);
      this.dropOldest();
    }
    return known;
  }

  /** Subscribers of the org that is dropped see their stream end and subscribe again. */
  private dropOldest(): void {
    if (this.handlers.size <= maxOrgs) return;
    const [org, { handler }] = this.handlers.entries().next().value!;
    this.handlers.delete(org);
    handler.close().catch(() => undefined);
  }

  private serverFor({ authInfo }: McpRequestContext): Server {
    const { exchange } = authInfo!.extra as unknown as { exchange: McpExchange };
    const server = new Server(serverInfo, { capabilities: modernCapabilities, instructions });
    server.setRequestHandler('tools/list', async ({ params }) => {
      try {
        return JSON.parse(pageText(await this.tools.list(exchange.ctx, exchange.options, params?.cursor))) as never;
      } catch (thrown) {
        throw protocolError(thrown);
      }
    });
    server.setRequestHandler('tools/call', async ({ params }, { mcpReq }) => {
      const token = (params._meta as JsonObject | undefined)?.progressToken;
      const notify = (progress: JsonObject) =>
        void mcpReq.notify({ method: 'notifications/progress', params: progress }).catch(() => undefined);
      try {
        const ctx = { ...exchange.ctx, signal: mcpReq.signal };
        return (await withHeartbeat(token, notify, () =>
          this.tools.call(ctx, readToolCall(params), takesTasks(params)),
        )) as never;
      } catch (thrown) {
        throw protocolError(thrown);
      }
    });
    this.addTaskMethods(server, exchange.ctx);
    return server;
  }

  /** The extension's methods; of `tasks/update` the SDK lifts the answers out of the params. */
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

function protocolError(thrown: unknown): ProtocolError {
  const { code, message, data } = mcpError(thrown);
  return ProtocolError.fromError(code, message, data);
}
