import { EventEmitter } from 'node:events';
import type { ServerUnaryCall, ServerWritableStream } from '@grpc/grpc-js';
import { requestIdOf } from '../platform/http/server/front-door.js';
import type { DoorRequest, DoorResponse } from '../platform/http/http.types.js';
import { patienceMs } from '../platform/http/streams/event-stream.js';
import type { HeldResponse } from '../platform/http/streams/sse-streams.js';
import type { GrpcStatus } from '../protocol/a2a/error/errors.js';

/** A call of a method that takes one message; its messages stay bytes. */
export type GrpcServerCall = ServerUnaryCall<Buffer, Buffer> | ServerWritableStream<Buffer, Buffer>;

/** A gRPC call as a request of a door: metadata are headers, the peer is the socket. A name that comes twice has both values. */
export function requestOf(call: GrpcServerCall, method: string): DoorRequest {
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

/** `address:port`, the address of version 6 without brackets. */
function addressOf(peer: string): string {
  return peer.slice(0, Math.max(peer.lastIndexOf(':'), 0));
}

/**
 * The answer of a gRPC call, as far as doors know answers: headers become initial metadata, `close` tells that nobody listens any more,
 * and whoever counts streams can end it. `finish` is called once, with how it ended.
 */
export class GrpcReply extends EventEmitter implements HeldResponse {
  readonly headers = new Map<string, string>();
  headersSent = false;
  writableEnded = false;
  writableFinished = false;
  /** The code of gRPC, once it is known; for logs and metrics. */
  statusCode = 0;
  private waiting = 0;

  constructor(
    private readonly call: GrpcServerCall,
    private readonly ended: (status: GrpcStatus) => void,
  ) {
    super();
    call.on('cancelled', () => this.close());
  }

  /** As a door sees it. */
  get asResponse(): DoorResponse {
    return this as unknown as DoorResponse;
  }

  get destroyed(): boolean {
    return this.writableEnded;
  }

  get writableLength(): number {
    return this.waiting;
  }

  setHeader(name: string, value: string): void {
    this.headers.set(name.toLowerCase(), value);
  }

  /** Heartbeats are HTTP/2's own here. */
  write(): boolean {
    return true;
  }

  /**
   * Sends one message of a stream and waits until the transport took it, so that a slow reader holds one message and no more; one that
   * takes nothing for too long is let go. False when it is gone.
   */
  async send(message: Buffer, patience = patienceMs): Promise<boolean> {
    if (this.writableEnded) return false;
    this.waiting = message.length;
    const taken = await new Promise<boolean>((resolve) => {
      const settle = (alive: boolean): void => {
        clearTimeout(late);
        this.off('close', onClose);
        resolve(alive);
      };
      const onClose = (): void => settle(false);
      const late = setTimeout(onClose, patience);
      this.once('close', onClose);
      (this.call as ServerWritableStream<Buffer, Buffer>).write(message, () => settle(true));
    });
    if (!taken && !this.writableEnded) this.destroy();
    this.waiting = 0;
    return taken;
  }

  /** Ends it as a server ends what it will not go on with: callers come back and are asked again. */
  end(): void {
    this.finish(unavailable);
  }

  /** The same, and the transport is told to drop what it holds: its reader does not read. */
  destroy(): void {
    this.finish(unavailable);
    resetStream(this.call);
  }

  /** Ends it well, by what sends the answer. */
  succeed(send: () => void): void {
    if (this.writableEnded) return;
    this.writableFinished = true;
    send();
    this.close();
  }

  /** Ends it with a status that is an error. */
  finish(status: GrpcStatus): void {
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

const unavailable: GrpcStatus = { code: 14, message: 'the stream was ended; call again', details: [] };

interface Layer {
  readonly call?: Layer;
  readonly nextCall?: Layer;
  readonly stream?: { close?: (code: number) => void };
}

const cancel = 8; // CANCEL of HTTP/2 (RFC 9113 section 7)

/** grpc-js has no way to reset a call whose reader does not read: its end would wait behind what was written. */
function resetStream(call: GrpcServerCall): void {
  let layer: Layer | undefined = call as unknown as Layer;
  while (layer && !layer.stream) layer = layer.call ?? layer.nextCall;
  layer?.stream?.close?.(cancel);
}
