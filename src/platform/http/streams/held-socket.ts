import { EventEmitter } from 'node:events';
import type { WebSocket } from 'ws';
import type { HeldResponse } from './sse-streams.js';

const beatMs = 30_000;
/** What may wait to be sent: one answer may be long, but a peer that does not read is let go. */
const maxUnsent = 16_777_216;
const politeMs = 2_000;

/** Codes with which a socket is closed (RFC 6455 section 7.4.1). */
export const closeCodes = { goingAway: 1_001, policy: 1_008 } as const;

/** A WebSocket that somebody opened to us, counted and ended as a standing stream is; a peer that answers no ping is gone. */
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
    // It closes next, and says so then.
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

  /** Lost when the socket is closed. */
  write(text: string): void {
    if (this.writableEnded) return;
    if (this.socket.bufferedAmount > maxUnsent) this.socket.terminate();
    else this.socket.send(text);
  }

  /** Its credential ended, or may have: its peer comes back and is asked again. */
  end(): void {
    void this.close(closeCodes.policy, 'the credential ended');
  }

  destroy(): void {
    this.socket.terminate();
  }

  /** Resolves when it is closed: politely, or after a while at once. */
  close(code: number, reason: string): Promise<void> {
    const { socket } = this;
    if (socket.readyState === socket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => {
      const late = setTimeout(() => socket.terminate(), politeMs);
      socket.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      socket.close(code, reason);
    });
  }
}
