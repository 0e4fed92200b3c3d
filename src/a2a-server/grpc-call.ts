import { EventEmitter } from 'node:events';
import type { ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { requestIdOf } from '../platform/http/server/front-door.js';
import type { DoorRequest, DoorResponse } from '../platform/http/http.types.js';
import { patienceMs } from '../platform/http/streams/event-stream.js';
import type { HeldResponse } from '../platform/http/streams/sse-streams.js';
import { isShredded } from '../platform/byte-collector.js';
import type { GrpcStatus } from '../protocol/a2a/error/errors.js';

/** Server call of a method that takes one message; messages stay bytes. */
export type GrpcServerCall = ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>;

/** Parts of a call that are known before its message. */
export type CallHead = Pick<GrpcServerCall, 'metadata' | 'getHost' | 'getPeer'>;

/**
 * Converts a gRPC call into a request for a door: metadata become headers, the peer becomes the socket. A name that
 * occurs twice has both values.
 */
export function requestOf(call: CallHead, method: string): DoorRequest {
  const headers: Record<string, string> = { host: call.getHost() };
  for (const name of Object.keys(call.metadata.getMap())) {
    const values = call.metadata.get(name).filter((value) => typeof value === 'string');
    if (values.length > 0) headers[name] = values.join(', ');
  }
  const request: Pick<DoorRequest, 'method' | 'url' | 'headers' | 'requestId'> & { socket: unknown } = {
    method: 'GRPC',
    url: method,
    headers,
    socket: { remoteAddress: addressOf(call.getPeer()) },
    requestId: requestIdOf(headers['x-request-id']),
  };
  return request as unknown as DoorRequest;
}

/** Address of a peer `address:port`, an IPv6 address without brackets. */
function addressOf(peer: string): string {
  return peer.slice(0, Math.max(peer.lastIndexOf(':'), 0));
}

/**
 * Response of a gRPC call with the interface that doors use. Headers become initial metadata, `close` is emitted when
 * the client has left, and the stream limit can end it. Calls `ended` once, with the final status.
 */
export class GrpcReply extends EventEmitter implements HeldResponse {
  readonly headers = new Map<string, string>();
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  /** gRPC status code, once it is known; for logs and metrics. */
  statusCode = 0;
  private unsentBytes = 0;

  constructor(
    private readonly call: GrpcServerCall,
    private readonly ended: (status: GrpcStatus) => void,
  ) {
    super();
    call.on('cancelled', () => this.close());
  }

  /** This reply with the type that doors expect. */
  get asResponse(): DoorResponse {
    return this as unknown as DoorResponse;
  }

  get destroyed(): boolean {
    return this.writableEnded;
  }

  get writableLength(): number {
    return this.unsentBytes;
  }

  setHeader(name: string, value: string): void {
    this.headers.set(name.toLowerCase(), value);
  }

  /** Does nothing, because HTTP/2 has its own heartbeats. */
  write(): boolean {
    return true;
  }

  /**
   * Sends one message of a stream and waits until the transport has taken it. So a slow reader holds at most one
   * message. Ends the call of a reader that takes nothing for `timeoutMs`. False when the call is over.
   */
  async writeMessage(message: Buffer, timeoutMs = patienceMs): Promise<boolean> {
    if (this.writableEnded) return false;
    this.unsentBytes = message.length;
    const taken = await new Promise<boolean>((resolve) => {
      const settle = (alive: boolean): void => {
        clearTimeout(timer);
        this.off('close', onClose);
        resolve(alive);
      };
      const onClose = (): void => settle(false);
      const timer = setTimeout(onClose, timeoutMs);
      this.once('close', onClose);
      (this.call as ServerWritableStream<Buffer, Buffer>).write(message, () => settle(true));
    });
    if (!taken && !this.writableEnded) this.destroy();
    this.unsentBytes = 0;
    return taken;
  }

  /** Ends the call with UNAVAILABLE, so that the client calls again. */
  end(): void {
    this.endWithStatus(unavailable);
  }

  /**
   * Ends the call with UNAVAILABLE and resets the stream: its reader does not read, so the transport drops the
   * buffered bytes.
   */
  destroy(): void {
    this.endWithStatus(unavailable);
    cancelStream(this.call);
  }

  /** Ends the call with success; `sendAnswer` sends it. */
  succeed(sendAnswer: () => void): void {
    if (this.writableEnded) return;
    this.writableFinished = true;
    sendAnswer();
    this.close();
  }

  /** Ends the call with an error status. */
  endWithStatus(status: GrpcStatus): void {
    if (this.writableEnded) return;
    this.statusCode = status.code;
    this.writableFinished = true;
    this.ended(status);
    this.close();
  }

  private close(): void {
    if (this.writableEnded) return;
    this.writableEnded = true;
    if (!this.writableFinished) this.statusCode = 1; // CANCELLED
    this.emit('close');
  }
}

const unavailable: GrpcStatus = { code: 14, message: 'the server ended the stream; call again', details: [] };

interface Layer {
  readonly call?: Layer;
  readonly nextCall?: Layer;
  readonly stream?: Http2Stream;
}

interface Http2Stream {
  readonly closed: boolean;
  readonly destroyed: boolean;
  readonly session?: { readonly state: { readonly outboundQueueSize?: number } };
  close(code: number): void;
  pause(): void;
  on(event: 'data', listener: (chunk: Buffer) => void): void;
  off(event: 'data', listener: (chunk: Buffer) => void): void;
  once(event: 'close', listener: () => void): void;
}

/** Error codes of HTTP/2 (RFC 9113 section 7). */
const resetCodes = { noError: 0, cancel: 8 } as const;

/** Pause between two checks of a connection that is not read, in milliseconds. */
const recheckMs = 50;

/**
 * Resets the HTTP/2 stream of a call that is not read. grpc-js has no method for it, and a normal end would
 * wait behind the bytes that the reader does not read. Frames that wait to be sent are lost.
 */
function cancelStream(call: object): void {
  streamOf(call)?.close(resetCodes.cancel);
}

/**
 * Resets the HTTP/2 stream of a call after its status, so that the client stops sending (RFC 9113 section 8.1). The
 * status must have left the process before: on Node 22 and 26 a reset drops headers that still wait to be sent.
 */
export function resetAfterStatus(call: object): void {
  const stream = streamOf(call);
  if (!stream) return;
  const reset = (): void => {
    const waiting = stream.session?.state.outboundQueueSize ?? 0;
    if (waiting === 0 || stream.closed) stream.close(resetCodes.noError);
    else setTimeout(reset, recheckMs).unref();
  };
  setImmediate(reset);
}

/** Calls `closed` when the client has taken everything of a call, or has left. */
export function onceClosed(call: object, closed: () => void): void {
  const stream = streamOf(call);
  if (!stream || stream.destroyed) closed();
  else stream.once('close', closed);
}

/**
 * Stops to read a request that arrives in too many tiny chunks, and calls `refuse`. grpc-js keeps each chunk until the
 * message is complete, which takes a hundred times the memory of its bytes.
 */
export function limitChunks(call: object, refuse: () => void): void {
  const stream = streamOf(call);
  let [chunks, bytes] = [0, 0];
  const count = ({ length }: Buffer): void => {
    chunks += 1;
    bytes += length;
    if (!isShredded(chunks, bytes)) return;
    stream?.off('data', count);
    stream?.pause();
    refuse();
  };
  stream?.on('data', count);
}

function streamOf(call: object): Http2Stream | undefined {
  let layer: Layer | undefined = call;
  while (layer && !layer.stream) layer = layer.call ?? layer.nextCall;
  return layer?.stream;
}
