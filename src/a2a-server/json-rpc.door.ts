import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { Json } from '../kernel/json.js';
import { readText, requireJson } from '../platform/http/body.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../platform/http/http.types.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
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
  parseJson,
  parseRequest,
  resultResponse,
  type JsonRpcId,
} from '../protocol/jsonrpc.js';
import { AgentDispatch } from './agent-dispatch.js';
import { agentPath, exactPath } from './a2a-paths.js';
import { Operations, type Asked } from './operations.js';
import { Replies, sendErrorEvent, sendJson, setErrorHeaders } from './reply.js';
import { keyOf, versionHeader, A2aRequests, type Arrival, type A2aRequest } from './a2a-requests.js';

const eventStream = 'text/event-stream';

/**
 * Differences between the paths: error codes for refused callers and failures, and the HTTP status of invalid
 * JSON-RPC (decisions D9).
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
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    return [
      this.route('/a2a/agents/{name}', 'A2A over JSON-RPC, one agent', agentPath('/a2a/agents/'), standard),
      this.route('/a2a', 'A2A over JSON-RPC, the default agent', exactPath('/a2a'), legacy),
      this.route(
        '/_agent-native/a2a',
        'A2A over JSON-RPC, the default agent, at the path of agent-native',
        exactPath('/_agent-native/a2a'),
        agentNative,
      ),
      this.route('/a2a/{handle}', 'A2A over JSON-RPC, one agent by handle', agentPath('/a2a/'), standard),
    ];
  }

  private route(template: string, summary: string, match: HotRoute['match'], config: DoorConfig): HotRoute {
    return {
      template,
      methods: ['POST'],
      cors: true,
      summary,
      match,
      handle: (request, response, target, params) =>
        this.handle({ request, response, target, config, id: null, readsEvents: false }, params.name),
    };
  }

  private async handle(exchange: Exchange, name: string | undefined): Promise<void> {
    const { request, response, config } = exchange;
    try {
      const arrival = await this.requests.enter(request, response, name, config.authCode === -32001);
      requireJson(request);
      const parsed = parseJson(await readText(request, this.requests.settings.RIALTO_MAX_BODY_BYTES));
      if (!parsed.ok) return malformed(exchange, jsonRpcCodes.parseError, parsed.reason);
      const envelope = parseRequest(parsed.value);
      if (!envelope.ok) {
        exchange.id = envelope.id;
        return malformed(exchange, jsonRpcCodes.invalidRequest, envelope.reason);
      }
      const { id, method, params } = envelope.request;
      exchange.id = id ?? null;
      const streamsOnly = dialects['0.3'].readsStreamOnly?.(method) === true;
      exchange.readsEvents = streamsOnly && request.headers.accept?.includes(eventStream) === true;
      const { agent } = arrival;
      const call = agent
        ? await this.redirectFromDefault(
            exchange,
            { ...arrival, agent },
            name,
            this.callOf(exchange, { ...arrival, agent }, method, params),
          )
        : await this.dispatchCall(exchange, arrival, method, params);
      // A notification is never answered (JSON-RPC 2.0 section 4.1), and no operation here makes sense without an
      // answer. A request without an id that cannot be served still gets its error: it is a request with one more
      // mistake.
      if (id === undefined) return void response.writeHead(204).end();
      await this.serve(exchange, call);
    } catch (error) {
      this.refuse(exchange, error);
    }
  }

  private refuse({ request, response, id, config, readsEvents }: Exchange, thrown: unknown): void {
    if (response.headersSent || response.destroyed) return void response.destroy();
    const error = RialtoError.from(thrown);
    const { requestId } = request;
    if (error.code === 'internal') this.log.error({ err: thrown, requestId }, 'a request failed');
    const status = jsonRpcStatus(error.code);
    setErrorHeaders(response, status, error);
    const body = errorOf(id, error, { ...config, requestId });
    if (status === 200 && readsEvents) return sendErrorEvent(response, body);
    sendJson(response, status, body);
  }

  /** Decodes the operation and its version. Throws when it cannot be served. */
  private callOf({ request, response, target }: Exchange, arrival: A2aRequest, method: string, params: unknown): Call {
    const negotiated = negotiate(method, versionHeader(request, target.query));
    if (!negotiated.ok) throw new RialtoError('version_not_supported', { data: { supported: arrival.agent.versions } });
    const asked = this.requests.ask(arrival, negotiated.version, request, response);
    const dialect = dialects[negotiated.version];
    return { asked, dialect, decoded: decode(dialect, method, params) };
  }

  /**
   * Returns the call for another agent, when the request names no agent and the operation is not for the default
   * agent.
   */
  private async redirectFromDefault(
    { request, response }: Exchange,
    arrival: A2aRequest,
    name: string | undefined,
    call: Call,
  ): Promise<Call> {
    if (name !== undefined || arrival.isOwnBearer) return call;
    const found = await this.dispatch.toolAgent(arrival.ctx, arrival.agent, call.decoded);
    if (!found) return call;
    const { agent, decoded } = found;
    return { ...call, decoded, asked: this.requests.ask({ ...arrival, agent }, decoded.version, request, response) };
  }

  /** Decodes a request without a default agent and chooses the agent by its content. */
  private async dispatchCall(
    { request, response, target }: Exchange,
    arrival: Arrival,
    method: string,
    params: unknown,
  ): Promise<Call> {
    const negotiated = negotiate(method, versionHeader(request, target.query));
    if (!negotiated.ok) throw new RialtoError('version_not_supported', { data: { supported: Object.keys(dialects) } });
    const dialect = dialects[negotiated.version];
    const requested = decode(dialect, method, params);
    const { agent, facts, decoded } = await this.dispatch.addressee(arrival.ctx, requested, keyOf(request));
    const asked = this.requests.ask({ ...arrival, agent }, negotiated.version, request, response);
    return { asked: { ...asked, facts }, dialect, decoded };
  }

  private async serve(exchange: Exchange, { asked, dialect, decoded }: Call): Promise<void> {
    const { response } = exchange;
    if (streaming.has(decoded.operation.name)) {
      const events = this.operations.stream(asked, decoded);
      return this.replies.stream(asked.ctx, response, events, framing(exchange, dialect, decoded));
    }
    const value = await this.operations.run(asked, decoded);
    if (response.destroyed) return;
    const result = resultResponse(exchange.id, resultOf(dialect, decoded, value, asked.agent.name));
    await this.replies.json(response, 200, result);
  }
}

function decode(dialect: Dialect, method: string, params: unknown): DecodedOperation {
  const decoded = dialect.decode(method, params, { newId });
  if (!decoded.ok) throw new RialtoError(decoded.code, { message: decoded.message, violations: decoded.violations });
  return decoded;
}

const streaming: ReadonlySet<OperationName> = new Set<OperationName>(['SendStreamingMessage', 'SubscribeToTask']);

function resultOf(
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
