import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { WebSocket } from 'ws';
import { RialtoError } from '../../kernel/errors.js';
import type { CredentialRemover } from '../../platform/secrets/credential-remover.js';
import { AnswerReader } from './answer-reader.js';

/** Maximum number of bytes that may wait to be sent. */
const maxUnsent = 16_777_216;
const pingMs = 30_000;
const closeMs = 2_000;

/**
 * Connection over a WebSocket: one JSON-RPC message per WebSocket message, as in the SDKs of the 2025 era. A peer that
 * does not answer a ping is disconnected.
 */
export class WebSocketTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  private readonly answers = new AnswerReader(
    (message) => this.onmessage?.(message),
    (error) => this.onerror?.(error),
    this.remover,
  );
  private socket?: WebSocket;
  private pingTimer?: NodeJS.Timeout;
  private isClosed = false;

  /** @param remover removes the credentials of the connection from each message. */
  constructor(
    private readonly open: () => Promise<WebSocket>,
    private readonly remover: CredentialRemover,
  ) {}

  /** Opens the socket. Throws as SafeFetch.socket does. */
  async start(): Promise<void> {
    const socket = await this.open();
    if (this.isClosed) return socket.terminate();
    this.socket = socket;
    let isAnswered = true;
    socket.on('pong', () => (isAnswered = true));
    socket.on('message', (data: Buffer, isBinary: boolean) => this.readFrame(data, isBinary));
    socket.on('error', (error) => this.onerror?.(error));
    socket.once('close', () => {
      clearInterval(this.pingTimer);
      this.answers.afterOthers(() => this.onclose?.());
    });
    this.pingTimer = setInterval(() => {
      if (!isAnswered) return socket.terminate();
      isAnswered = false;
      socket.ping();
    }, pingMs).unref();
  }

  /** Sends a message. Throws `remote_transport` when the socket is closed, or when the server reads too slowly. */
  send(message: JSONRPCMessage): Promise<void> {
    const { socket } = this;
    if (!socket || socket.bufferedAmount > maxUnsent)
      return Promise.reject(
        new RialtoError('remote_transport', { message: 'the MCP server is not connected, or reads too slowly' }),
      );
    this.answers.sends(message);
    return new Promise((resolve, reject) => {
      socket.send(JSON.stringify(message), (cause) => {
        if (!cause) resolve();
        else reject(new RialtoError('remote_transport', { message: 'the MCP server is not connected', cause }));
      });
    });
  }

  close(): Promise<void> {
    this.isClosed = true;
    const { socket } = this;
    if (!socket || socket.readyState === socket.CLOSED) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(() => socket.terminate(), closeMs);
      socket.once('close', () => {
        clearTimeout(timer);
        resolve();
      });
      socket.close(1_000);
    });
  }

  private readFrame(data: Buffer, isBinary: boolean): void {
    if (isBinary) this.onerror?.(new RialtoError('remote_invalid_response', { message: binary }));
    else {
      this.answers.readText(data.toString('utf8'));
      if (!this.answers.isReading) return;
      this.socket?.pause();
      this.answers.afterOthers(() => this.socket?.resume());
    }
  }
}

const binary = 'the MCP server sent a binary message; only text is accepted';
