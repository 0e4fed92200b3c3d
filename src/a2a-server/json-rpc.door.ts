import { Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { Json } from '../kernel/json.js';
import { readText, requireJson } from '../platform/http/body.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../platform/http/http.types.js';
import { readRpcId } from '../platform/http/rpc-id.js';
import type { Dialect, OperationValues, SendValue } from '../protocol/a2a/dialect.js';
import { dialects } from '../protocol/a2a/dialects.js';
import { jsonRpcError, jsonRpcStatus, type RpcErrorOptions } from '../protocol/a2a/error/errors.js';
import type { StreamResponse } from '../protocol/a2a/model.js';
import { failedEvent, failedReply } from '../protocol/a2a/error/rejected.js';
import { negotiate } from '../protocol/a2a/card/negotiate.js';
import type { DecodedOperation, OperationName } from '../protocol/a2a/request/operations.js';
import {
  errorResponse,
  jsonRpcCodes,
  parseRequest,
  resultResponse,
  type JsonRpcId,
  type JsonRpcRequest,
} from '../protocol/jsonrpc.js';
import type { PublishedAgent } from '../registry/published.types.js';
import { AgentDispatch } from './agent-dispatch.js';
import { agentPath, exactPath } from './a2a-paths.js';
import { directAction, DirectActions } from './direct-actions.js';
import { Operations, type Asked } from './operations.js';
import { Replies, sendErrorEvent, sendJson, setErrorHeaders } from './reply.js';
import { A2aRequests, idempotencyKeyIn, noAgentNamed, versionHeader, type Arrival } from './a2a-requests.js';
import { parseLongJson } from '../platform/turns.js';

const eventStream = 'text/event-stream';

/**
 * Differences between the paths: error codes for refused callers and failures, and the HTTP status of invalid JSON-RPC.
 */
interface DoorConfig extends RpcErrorOptions {
  readonly malformedStatus: 200 | 400;
}

const standard: DoorConfig = { malformedStatus: 200 };
const legacy: DoorConfig = { malformedStatus: 200, authCode: -32001 };
const agentNative: DoorConfig = { malformedStatus: 400, authCode: -32001, failureCode: -32000 };

/** Request and the parts of it that are known so far; errors are answered with its id. */
interface Exchange {
  readonly request: DoorRequest;
  readonly response: DoorResponse;
  readonly target: Target;
  readonly config: DoorConfig;
  id: JsonRpcId;
  /** True when the client reads the answer as an event stream only, as clients of 0.3 do. */
  readsEvents: boolean;
}

interface Call {
  readonly asked: Asked;
  readonly dialect: Dialect;
  readonly decoded: DecodedOperation;
}

/** A2A over JSON-RPC in front of Express. Each path accepts every version and older method names. */
@Injectable()
export class JsonRpcDoor {
  constructor(
    private readonly requests: A2aRequests,
    private readonly dispatch: AgentDispatch,
    private readonly operations: Operations,
    private readonly replies: Replies,
    private readonly actions: DirectActions,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    return [
      this.rpcRoute('/a2a/agents/{name}', 'A2A over JSON-RPC, one agent', agentPath('/a2a/agents/'), standard),
      this.rpcRoute('/a2a', 'A2A over JSON-RPC, the default agent', exactPath('/a2a'), legacy),
      this.rpcRoute(
        '/_agent-native/a2a',
        'A2A over JSON-RPC, the default agent, at the path of agent-native',
        exactPath('/_agent-native/a2a'),
        agentNative,
      ),
      this.rpcRoute('/a2a/{handle}', 'A2A over JSON-RPC, one agent by handle', agentPath('/a2a/'), standard),
    ];
  }

  private rpcRoute(template: string, summary: string, match: HotRoute['match'], config: DoorConfig): HotRoute {
    return {
      template,
      methods: ['POST'],
      cors: true,
      summary,
      match,
      handle: (request, response, target, params) =>
        this.handleRequest({ request, response, target, config, id: null, readsEvents: false }, params.name),
    };
  }

  private async handleRequest(exchange: Exchange, name: string | undefined): Promise<void> {
    const { request, response } = exchange;
    try {
      const arrival = await this.identify(exchange, name);
      requireJson(request);
      const parsed = await parseLongJson(await readText(request, this.requests.settings.RIALTO_MAX_BODY_BYTES));
      if (!parsed.ok) return malformed(exchange, jsonRpcCodes.parseError, parsed.reason);
      const envelope = parseRequest(parsed.value);
      if (!envelope.ok) {
        exchange.id = envelope.id;
        return malformed(exchange, jsonRpcCodes.invalidRequest, envelope.reason);
      }
      const { id, method } = envelope.request;
      exchange.id = id ?? null;
      const streamsOnly = dialects['0.3'].readsStreamOnly?.(method) === true;
      exchange.readsEvents = streamsOnly && request.headers.accept?.includes(eventStream) === true;
      if (method === directAction && id !== undefined)
        return await this.invokeAction(exchange, arrival, envelope.request);
      const call = await this.readCall(exchange, arrival, name, envelope.request);
      // A notification is never answered (JSON-RPC 2.0 section 4.1), and no operation here makes sense without an
      // answer. A request without an id that cannot be served still gets its error: it is a request with one more
      // mistake.
      if (id === undefined) return void response.writeHead(204).end();
      await this.runOperation(exchange, call);
    } catch (error) {
      this.sendError(exchange, error);
    }
  }

  /**
   * Identifies the caller and the agent. When only the agent is unknown, the error has the id of the request. The error
   * of an unknown caller has the id null, because its body is not read.
   */
  private async identify(exchange: Exchange, name: string | undefined): Promise<Arrival> {
    const { request, response, config } = exchange;
    try {
      return await this.requests.identify(request, response, name, config.authCode === -32001);
    } catch (error) {
      const isKnown = RialtoError.from(error).code === 'not_found';
      if (isKnown) exchange.id = await readRpcId(request, this.requests.settings.RIALTO_MAX_BODY_BYTES);
      throw error;
    }
  }

  /** Calls a tool of the agent directly: a method of agent-native, equal in all versions of A2A. */
  private async invokeAction({ response, id }: Exchange, { ctx, agent }: Arrival, request: JsonRpcRequest) {
    if (!agent) throw noAgentNamed();
    const result = await this.actions.invoke(ctx, agent, request.params);
    if (!response.destroyed) await this.replies.sendResult(response, 200, resultResponse(id, result));
  }

  private sendError({ request, response, id, config, readsEvents }: Exchange, thrown: unknown): void {
    if (response.headersSent || response.destroyed) return void response.destroy();
    const error = RialtoError.from(thrown);
    const { requestId } = request;
    this.replies.logFailure(thrown, requestId);
    const status = jsonRpcStatus(error.code);
    setErrorHeaders(response, status, error);
    const body = errorOf(id, error, { ...config, requestId });
    if (status === 200 && readsEvents) return sendErrorEvent(response, body);
    sendJson(response, status, body);
  }

  /**
   * Decodes the operation and finds its agent: the one of the arrival, unless the request names none and the operation
   * is for another. Throws when it cannot be served.
   */
  private async readCall(
    { request, response, target }: Exchange,
    arrival: Arrival,
    name: string | undefined,
    { method, params }: Pick<JsonRpcRequest, 'method' | 'params'>,
  ): Promise<Call> {
    const { ctx, agent: own, isOwnBearer } = arrival;
    const negotiated = negotiate(method, versionHeader(request, target.query));
    if (!negotiated.ok) {
      const supported = own?.versions ?? Object.keys(dialects);
      throw new RialtoError('version_not_supported', { data: { supported } });
    }
    const { version } = negotiated;
    const dialect = dialects[version];
    const askedOf = (agent: PublishedAgent): Asked =>
      this.requests.readHeaders({ ...arrival, agent }, version, request, response);
    const asked = own && askedOf(own);
    const decoded = decodeOperation(dialect, method, params);
    if (!asked) {
      const chosen = await this.dispatch.chooseAddressee(ctx, decoded, idempotencyKeyIn(request));
      return { asked: { ...askedOf(chosen.agent), facts: chosen.facts }, dialect, decoded: chosen.decoded };
    }
    const other =
      name === undefined && !isOwnBearer ? await this.dispatch.findListedAgent(ctx, asked.agent, decoded) : undefined;
    return other ? { asked: askedOf(other.agent), dialect, decoded: other.decoded } : { asked, dialect, decoded };
  }

  private async runOperation(exchange: Exchange, { asked, dialect, decoded }: Call): Promise<void> {
    const { response } = exchange;
    if (streaming.has(decoded.operation.name)) {
      const events = this.operations.streamOperation(asked, decoded);
      return this.replies.sendStream(asked.ctx, response, events, framing(exchange, dialect, decoded));
    }
    const value = await this.operations.runOperation(asked, decoded);
    if (response.destroyed) return;
    const result = resultResponse(exchange.id, encodeResult(dialect, decoded, value, asked.agent.name));
    await this.replies.sendResult(response, 200, result);
  }
}

function decodeOperation(dialect: Dialect, method: string, params: unknown): DecodedOperation {
  const decoded = dialect.decode(method, params, { newId });
  if (!decoded.ok) throw new RialtoError(decoded.code, { message: decoded.message, violations: decoded.violations });
  return decoded;
}

const streaming: ReadonlySet<OperationName> = new Set<OperationName>(['SendStreamingMessage', 'SubscribeToTask']);

function encodeResult(
  dialect: Dialect,
  { operation, rejectedFails }: DecodedOperation,
  value: unknown,
  agentName: string,
): Json {
  const shown = rejectedFails && operation.name === 'SendMessage' ? failedReply(value as SendValue) : value;
  return dialect.encodeResult(operation, shown as OperationValues[OperationName], { agentName });
}

function framing({ id, config, request }: Exchange, dialect: Dialect, { rejectedFails }: DecodedOperation) {
  return {
    event: (body: StreamResponse) => resultResponse(id, dialect.encodeEvent(rejectedFails ? failedEvent(body) : body)),
    error: (error: unknown) => errorOf(id, error, { ...config, requestId: request.requestId }),
  };
}

function malformed({ response, id, config }: Exchange, code: number, reason: string): void {
  const title = code === jsonRpcCodes.parseError ? 'Parse error' : 'Invalid request';
  sendJson(response, config.malformedStatus, errorResponse(id, code, `${title}: ${reason}`));
}

function errorOf(id: JsonRpcId, error: unknown, options: RpcErrorOptions) {
  const { code, message, data } = jsonRpcError(error, options);
  return errorResponse(id, code, message, data);
}
