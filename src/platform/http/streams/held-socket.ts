import { EventEmitter } from 'node:events';
import type { WebSocket } from 'ws';
import type { HeldResponse } from './sse-streams.js';

const beatMs = 30_000;
/** How much may wait to be sent, in bytes: one answer may be long, but a peer that does not read is disconnected. */
const maxUnsent = 16_777_216;
const closeTimeoutMs = 2_000;

/** Codes for closing a socket (RFC 6455 section 7.4.1). */
export const closeCodes = { goingAway: 1_001, policy: 1_008 } as const;

/**
 * A WebSocket that a client opened, counted and ended like a standing stream. A peer that does not answer a ping is
 * disconnected.
 */
export class HeldSocket extends EventEmitter implements HeldResponse {
  readonly headersSent = true;

  constructor(private readonly socket: WebSocket) {
    super();
    let isAnswered = true;
    const beats = setInterval(() => {
      if (!isAnswered) return socket.terminate();
      isAnswered = false;
      socket.ping();
    }, beatMs).unref();
    socket.on('pong', () => (isAnswered = true));
    // The error is followed by `close`.
    socket.on('error', () => undefined);
    socket.once('close', () => {
      clearInterval(beats);
      this.emit('close');
    });
  }

  get writableEnded(): boolean {
    return this.socket.readyState !== this.socket.OPEN;
  }

  get writableLength(): number {
    return this.socket.bufferedAmount;
  }

  get destroyed(): boolean {
    return this.socket.readyState === this.socket.CLOSED;
  }

  /** Drops the text when the socket is closed. */
  write(text: string): void {
    if (this.writableEnded) return;
    if (this.socket.bufferedAmount > maxUnsent) this.socket.terminate();
    else this.socket.send(text);
  }

  /**
   * Closes the socket because its credential ended or may have ended. The peer connects again and is authenticated
   * again.
   */
  end(): void {
    void this.close(closeCodes.policy, 'the credential ended');
  }

  destroy(): void {
    this.socket.terminate();
  }

  /** Resolves when the socket is closed: after the closing handshake, or by force after 2 seconds. */
  close(code: number, reason: string): Promise<void> {
    const { socket } = this;
    if (socket.readyState === socket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => {
      const late = setTimeout(() => socket.terminate(), closeTimeoutMs);
      socket.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      socket.close(code, reason);
    });
  }
}
