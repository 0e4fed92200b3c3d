import type { JSONRPCMessage, Transport } from '@modelcontextprotocol/client';
import type { WebSocket } from 'ws';
import { RialtoError } from '../../kernel/errors.js';
import { AnswerReader } from './answer-reader.js';

/** What may wait to be sent. */
const maxUnsent = 16_777_216;
const beatMs = 30_000;
const politeMs = 2_000;

/** A line over a WebSocket: one JSON-RPC message a message, as the SDKs of the 2025 era had it. A peer that answers no ping is gone. */
export class WebSocketTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: (message: JSONRPCMessage) => void;
  private readonly answers = new AnswerReader(
    (message) => this.onmessage?.(message),
    (error) => this.onerror?.(error),
  );
  private socket?: WebSocket;
  private beats?: NodeJS.Timeout;
  private isClosed = false;

  constructor(private readonly open: () => Promise<WebSocket>) {}

  /** Throws as SafeFetch.socket does. */
  async start(): Promise<void> {
    const socket = await this.open();
    if (this.isClosed) return socket.terminate();
    this.socket = socket;
    let isAnswered = true;
    socket.on('pong', () => (isAnswered = true));
    socket.on('message', (data: Buffer, isBinary: boolean) => this.read(data, isBinary));
    socket.on('error', (error) => this.onerror?.(error));
    socket.once('close', () => {
      clearInterval(this.beats);
      this.onclose?.();
    });
    this.beats = setInterval(() => {
      if (!isAnswered) return socket.terminate();
      isAnswered = false;
      socket.ping();
    }, beatMs).unref();
  }

  /** Throws `remote_transport` when it is closed, or its server does not read. */
  send(message: JSONRPCMessage): Promise<void> {
    const { socket } = this;
    if (!socket || socket.bufferedAmount > maxUnsent)
      return Promise.reject(new RialtoError('remote_transport', { message: 'the MCP server does not read' }));
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
      const late = setTimeout(() => socket.terminate(), politeMs);
      socket.once('close', () => {
        clearTimeout(late);
        resolve();
      });
      socket.close(1_000);
    });
  }

  private read(data: Buffer, isBinary: boolean): void {
    if (isBinary) this.onerror?.(new RialtoError('remote_invalid_response', { message: binary }));
    else this.answers.read(data.toString('utf8'));
  }
}

const binary = 'the MCP server says what is no text';
