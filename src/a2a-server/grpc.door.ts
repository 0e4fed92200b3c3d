import { Inject, Injectable } from '@nestjs/common';
import type { Metadata, sendUnaryData, ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { RialtoError } from '../kernel/errors.js';
import { newId } from '../kernel/ids.js';
import type { DoorRequest } from '../platform/http/http.types.js';
import { requestTimeoutMs } from '../platform/http/server/front-server.js';
import { AnswerBudget } from '../platform/http/shares/answer-budget.js';
import { SseStreams } from '../platform/http/streams/sse-streams.js';
import { weigh } from '../platform/turns.js';
import { HttpWatch } from '../platform/telemetry/http-watch.js';
import { LOGGER, type Logger } from '../platform/telemetry/logger.js';
import type { OperationNamed, OperationValues } from '../protocol/a2a/dialect.js';
import { grpcStatus, type GrpcStatus } from '../protocol/a2a/error/errors.js';
import { statusBytes, type GrpcMethod } from '../protocol/a2a/grpc.js';
import { restVersion } from '../protocol/a2a/card/negotiate.js';
import type { DecodedOperation, OperationName } from '../protocol/a2a/request/operations.js';
import type { StreamedEvent } from '../tasks/task.service.js';
import { GrpcReply, onceClosed, requestOf, type CallHead, type GrpcServerCall } from './grpc-call.js';
import type { CallGate } from './grpc-guard.js';
import { Operations, type Asked } from './operations.js';
import { A2aRequests } from './a2a-requests.js';

const maxMessage = 1_000;

/** The request of a call, made from its metadata. */
interface Arrived {
  readonly request: DoorRequest;
  /** Error of a call that is refused before its message is read. */
  refusal?: RialtoError;
}

/** A call and the parts of it that are known so far. */
interface Exchange extends Arrived {
  readonly method: GrpcMethod;
  readonly bytes: Buffer;
  readonly reply: GrpcReply;
}

/** Makes metadata; grpc-js is loaded only when a gRPC port is configured. */
export type NewMetadata = () => Metadata;

/** A2A over gRPC, both services: the same steps as the HTTP doors, with metadata as headers. */
@Injectable()
export class GrpcDoor implements CallGate {
  /** The same time as at the HTTP doors; tests shorten it. */
  requestTimeoutMs = requestTimeoutMs;
  /** Keyed by metadata, because a handler and its interceptor share no other object. */
  private readonly arrivals = new WeakMap<Metadata, Arrived>();
  private readonly openStreams = new Set<GrpcReply>();

  constructor(
    private readonly requests: A2aRequests,
    private readonly operations: Operations,
    private readonly streams: SseStreams,
    private readonly budget: AnswerBudget,
    private readonly watch: HttpWatch,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /** Identifies the caller before the message is read. */
  async admit(head: CallHead, method: string): Promise<boolean> {
    const arrived: Arrived = { request: requestOf(head, method) };
    this.arrivals.set(head.metadata, arrived);
    try {
      await this.requests.identifyCaller(arrived.request);
      return true;
    } catch (error) {
      arrived.refusal = RialtoError.from(error);
      return false;
    }
  }

  expire({ metadata }: CallHead): void {
    this.arrivals.get(metadata)!.refusal = new RialtoError('remote_timeout', {
      message: `the request did not end within ${this.requestTimeoutMs / 1_000} seconds`,
    });
  }

  refuseChunks({ metadata }: CallHead): void {
    this.arrivals.get(metadata)!.refusal = new RialtoError('invalid_params', {
      message: 'the request has too many tiny chunks; send larger chunks',
    });
  }

  /** Handles a call of a unary method. */
  async handleUnary(
    method: GrpcMethod,
    call: ServerUnaryCall<Buffer, Buffer>,
    answer: sendUnaryData<Buffer>,
    newMetadata: NewMetadata,
  ): Promise<void> {
    const exchange = this.beginExchange(method, call, (status) => answer(statusOf(status, exchange, newMetadata)));
    const { reply } = exchange;
    try {
      const [asked, decoded] = await this.decodeCall(exchange);
      const value = await this.operations.runOperation(asked, decoded);
      // Many calls share a connection, and each answer stays in memory until its client reads it (abuse case 35).
      const release = await this.budget.waitForReleasable(reply.asResponse, await weigh(value), asked.ctx);
      if (!release) return;
      onceClosed(call, release);
      const operation = decoded.operation as OperationNamed<OperationName>;
      const bytes = method.encode(operation, value as OperationValues[OperationName]);
      if (reply.writableEnded) return;
      call.sendMetadata(initial(reply, newMetadata));
      reply.succeed(() => answer(null, bytes));
    } catch (error) {
      this.sendError(exchange, error);
    }
  }

  /** Handles a call of a streaming method. */
  async handleStream(
    method: GrpcMethod,
    call: ServerWritableStream<Buffer, Buffer>,
    newMetadata: NewMetadata,
  ): Promise<void> {
    const exchange = this.beginExchange(method, call, (status) =>
      call.emit('error', statusOf(status, exchange, newMetadata)),
    );
    const { reply } = exchange;
    this.openStreams.add(reply);
    reply.once('close', () => this.openStreams.delete(reply));
    try {
      const [asked, decoded] = await this.decodeCall(exchange);
      await this.sendEvents(exchange, asked, this.operations.streamOperation(asked, decoded), () =>
        call.sendMetadata(initial(reply, newMetadata)),
      );
      reply.succeed(() => call.end());
    } catch (error) {
      this.sendError(exchange, error);
    }
  }

  /** Ends all streams because this process stops; the clients connect to another process. */
  endStreams(): void {
    for (const reply of [...this.openStreams]) reply.end();
  }

  private beginExchange(method: GrpcMethod, call: GrpcServerCall, ended: (status: GrpcStatus) => void): Exchange {
    const path = `/${method.service}/${method.rpc}`;
    const arrived = this.arrivals.get(call.metadata)!;
    const { request } = arrived;
    const reply = new GrpcReply(call, ended);
    reply.setHeader('x-request-id', request.requestId);
    this.watch.observe(request, reply.asResponse, () => path);
    return { ...arrived, method, bytes: call.request, reply };
  }

  /** Finds the agent before the message is decoded; only the tenant is read before. */
  private async decodeCall(exchange: Exchange): Promise<[Asked, DecodedOperation]> {
    const { method, bytes, request, reply, refusal } = exchange;
    if (refusal !== undefined) throw refusal;
    const { headers } = request;
    const arrival = await this.requests.identifyForAgent(
      request,
      reply.asResponse,
      agentNamedIn(headers) ?? method.tenantOf(bytes),
    );
    const negotiated = restVersion(singleHeader(headers['a2a-version']), method.version !== '1.0');
    if (!negotiated.ok) throw new RialtoError('version_not_supported', { data: { supported: arrival.agent.versions } });
    const asked = this.requests.readHeaders(arrival, method.version, request, reply.asResponse);
    const decoded = method.decode(bytes, { newId });
    if (!decoded.ok) throw new RialtoError(decoded.code, { message: decoded.message, violations: decoded.violations });
    return [asked, decoded];
  }

  /**
   * Sends the events of a stream. An error before the first event becomes the error of the call, as on the other
   * bindings.
   */
  private async sendEvents(
    { method, reply }: Exchange,
    { ctx }: Asked,
    events: AsyncGenerator<StreamedEvent, void>,
    begin: () => void,
  ): Promise<void> {
    try {
      this.streams.hold(ctx, reply, { beats: false });
      for await (const { body } of events) {
        if (reply.writableEnded) return;
        if (!reply.headersSent) begin();
        reply.headersSent = true;
        const release = await this.budget.part(reply.asResponse, await weigh(body), ctx);
        if (!(await reply.writeMessage(method.encodeEvent(body)).finally(release))) return;
      }
    } finally {
      await events.return();
    }
  }

  private sendError({ request, reply }: Exchange, thrown: unknown): void {
    const error = RialtoError.from(thrown);
    const { requestId } = request;
    if (error.code === 'internal') this.log.error({ err: thrown, requestId }, 'a request failed');
    reply.endWithStatus(grpcStatus(error, { requestId, profile: this.requests.settings.RIALTO_A2A_PROFILE }));
  }
}

/** Agent named in the metadata; the `tenant` of a card names the same agent in the message. */
function agentNamedIn(headers: DoorRequest['headers']): string | undefined {
  return singleHeader(headers['rialto-agent']) || undefined;
}

function singleHeader(header: string | string[] | undefined): string | undefined {
  return typeof header === 'string' ? header : undefined;
}

function initial(reply: GrpcReply, newMetadata: NewMetadata): Metadata {
  const metadata = newMetadata();
  for (const [name, value] of reply.headers) metadata.set(name, value);
  return metadata;
}

/** Status for grpc-js, with its details. Contains the request id if no initial metadata was sent before. */
function statusOf(status: GrpcStatus, { reply }: Exchange, newMetadata: NewMetadata) {
  const metadata = reply.headersSent ? newMetadata() : initial(reply, newMetadata);
  if (status.details.length > 0) metadata.set('grpc-status-details-bin', statusBytes(status));
  return { code: status.code, details: status.message.toWellFormed().slice(0, maxMessage).toWellFormed(), metadata };
}
