import { Inject, Injectable } from '@nestjs/common';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { Json } from '../kernel/json.js';
import { readText, requireJson } from '../platform/http/body.js';
import type { DoorRequest, DoorResponse, HotRoute, Target } from '../platform/http/http.types.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { OperationNamed, OperationValues } from '../protocol/a2a/dialect.js';
import { httpError } from '../protocol/a2a/error/errors.js';
import type { A2aVersion } from '../protocol/a2a/model.js';
import { restVersion } from '../protocol/a2a/card/negotiate.js';
import type { DecodedOperation, OperationName } from '../protocol/a2a/request/operations.js';
import { decodeRest, encodeRestEvent, encodeRestResult, matchRest, type RestMatch } from '../protocol/a2a/rest/rest.js';
import { splitAgentPath } from './a2a-paths.js';
import { Operations, type Asked } from './operations.js';
import { Replies, sendJson, setErrorHeaders } from './reply.js';
import { replayedHeader, versionHeader, A2aRequests, type A2aRequest } from './a2a-requests.js';
import { parseLongJson } from '../platform/turns.js';

const prefix = '/a2a/agents/';
const a2aJson = 'application/a2a+json';

interface Exchange {
  readonly request: DoorRequest;
  readonly response: DoorResponse;
  readonly target: Target;
  readonly name: string;
  readonly path: string;
}

/** A2A over HTTP+JSON, with streams, in front of Express. v1.0 is below the URL of an agent, v0.3 below its `/v1`. */
@Injectable()
export class RestDoor {
  constructor(
    private readonly requests: A2aRequests,
    private readonly operations: Operations,
    private readonly replies: Replies,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Routes for the table of the front door. */
  routes(): HotRoute[] {
    return [
      {
        template: '/a2a/agents/{name}/{operation}',
        methods: ['GET', 'POST', 'DELETE'],
        cors: true,
        summary: 'A2A over HTTP+JSON: message:send, message:stream, tasks…, extendedAgentCard; v0.3 below /v1',
        match: (path) => {
          const found = splitAgentPath(prefix, path);
          return found && found.rest.length > 1 ? { name: found.name, operation: found.rest } : undefined;
        },
        handle: (request, response, target, params) =>
          this.handleRequest({ request, response, target, name: params.name!, path: params.operation! }),
      },
    ];
  }

  private async handleRequest(exchange: Exchange): Promise<void> {
    const { request, response, path } = exchange;
    const version: A2aVersion = path.startsWith('/v1/') ? '0.3' : '1.0';
    try {
      const arrival = await this.requests.identifyForAgent(request, response, exchange.name);
      const match = matchRest(request.method ?? '', path);
      if (!match) throw new RialtoError('method_not_found', { message: 'no such operation at this path' });
      if ('allow' in match) {
        response.setHeader('Allow', match.allow.join(', '));
        throw new RialtoError('method_not_allowed');
      }
      await this.runOperation(exchange, arrival, match);
    } catch (error) {
      this.sendError(exchange, version, error);
    }
  }

  private async runOperation(
    { request, response, target }: Exchange,
    arrival: A2aRequest,
    match: RestMatch,
  ): Promise<void> {
    const { version } = match;
    const negotiated = restVersion(versionHeader(request, target.query), version === '0.3');
    if (!negotiated.ok) throw new RialtoError('version_not_supported', { data: { supported: arrival.agent.versions } });
    const asked = this.requests.readHeaders(arrival, version, request, response);
    const body = await this.readBody(request);
    const decoded = decodeRest(match, target.query, body, { newId });
    if (!decoded.ok) throw new RialtoError(decoded.code, { message: decoded.message, violations: decoded.violations });
    if (match.stream) {
      const framing = {
        event: (event: Parameters<typeof encodeRestEvent>[1]) => encodeRestEvent(version, event),
        error: (error: unknown) => httpError(error, this.errorOptions(request, version)).body,
      };
      return this.replies.sendStream(asked.ctx, response, this.operations.streamOperation(asked, decoded), framing);
    }
    const value = await this.operations.runOperation(asked, decoded);
    if (response.destroyed) return;
    const answer = encodeRestResult(
      version,
      decoded.operation as OperationNamed<OperationName>,
      value as OperationValues[OperationName],
    );
    if (answer === undefined) return void response.writeHead(match.successStatus).end();
    const isCreated = hasKey(asked, decoded) && !response.hasHeader(replayedHeader);
    await this.replies.sendResult(response, isCreated ? 201 : match.successStatus, answer, typeOfAnswer(request));
  }

  /** Reads the body; without text it is undefined, with any declared type. */
  private async readBody(request: DoorRequest): Promise<Json | undefined> {
    if (request.method !== 'POST') return undefined;
    const text = await readText(request, this.requests.settings.RIALTO_MAX_BODY_BYTES);
    if (text.trim() === '') return undefined;
    requireJson(request);
    const parsed = await parseLongJson(text);
    if (parsed.ok) return parsed.value;
    const violations = [{ field: 'body', description: parsed.reason }];
    throw new RialtoError('invalid_params', { message: `the body: ${parsed.reason}`, violations });
  }

  private sendError({ request, response }: Exchange, version: A2aVersion, thrown: unknown): void {
    if (response.headersSent || response.destroyed) return void response.destroy();
    const error = RialtoError.from(thrown);
    const { requestId } = request;
    if (error.code === 'internal') this.log.error({ err: thrown, requestId }, 'a request failed');
    const { status, body } = httpError(error, this.errorOptions(request, version));
    setErrorHeaders(response, status, error);
    sendJson(response, status, body, typeOfAnswer(request));
  }

  private errorOptions({ requestId }: DoorRequest, version: A2aVersion) {
    return { requestId, version, profile: this.requests.settings.RIALTO_A2A_PROFILE };
  }
}

/**
 * Whether a message that begins a task has a key. Then 201 marks a new task, and 200 one that an earlier message made
 * (RI-46).
 */
function hasKey({ idempotencyKey }: Asked, { operation }: DecodedOperation): boolean {
  if (operation.name !== 'SendMessage' || operation.params.message.taskId !== undefined) return false;
  return (idempotencyKey ?? operation.params.idempotencyKey) !== undefined;
}

/** Content type that the caller accepts or sends, if it is one of the two of A2A; plain JSON otherwise. */
function typeOfAnswer({ headers }: DoorRequest): string {
  const named = headers.accept?.includes(a2aJson) || headers['content-type']?.startsWith(a2aJson);
  return named ? a2aJson : 'application/json';
}
