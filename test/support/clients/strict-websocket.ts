import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { ByteReader } from './byte-reader.js';
import { WireError } from './strict-http.js';

export type WebSocketFrame =
  { readonly text: string } | { readonly close: number; readonly reason: string } | { readonly ping: Buffer };

const opcodes = { text: 1, close: 8, ping: 9 };
const acceptKey = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';

/**
 * A WebSocket client on a bare socket that accepts only what RFC 6455 allows a server without extensions: unmasked
 * whole frames with the shortest length field, one close frame, and then the end of the connection. Every method throws
 * `WireError` for anything else.
 */
export class StrictWebSocket {
  private constructor(
    private readonly socket: Socket,
    private readonly reader: ByteReader,
  ) {}

  /**
   * Opens a connection.
   * @param url of the endpoint, with the scheme http.
   */
  static async open(url: string, token: string): Promise<StrictWebSocket> {
    const { host, hostname, port, pathname } = new URL(url);
    const socket = connect({ host: hostname, port: Number(port) });
    await once(socket, 'connect');
    const key = randomBytes(16).toString('base64');
    const lines = [
      `GET ${pathname} HTTP/1.1`,
      `Host: ${host}`,
      'Connection: Upgrade',
      'Upgrade: websocket',
      'Sec-WebSocket-Version: 13',
      `Sec-WebSocket-Key: ${key}`,
      `Authorization: Bearer ${token}`,
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    const reader = new ByteReader(socket);
    const answer: string[] = [];
    for (let line = await reader.line(); line !== ''; line = await reader.line()) answer.push(line);
    const accept = createHash('sha1')
      .update(key + acceptKey)
      .digest('base64');
    if (!answer[0]!.startsWith('HTTP/1.1 101 ') || !answer.includes(`Sec-WebSocket-Accept: ${accept}`))
      throw new WireError(`the handshake failed: ${answer.join(' | ')}`);
    return new StrictWebSocket(socket, reader);
  }

  send(value: object): void {
    this.write(opcodes.text, Buffer.from(JSON.stringify(value)));
  }

  close(code: number): void {
    this.write(opcodes.close, Buffer.from([code >> 8, code & 255]));
  }

  /** Reads the next frame. */
  async next(): Promise<WebSocketFrame> {
    const [first, second] = (await this.reader.take(2)) as unknown as [number, number];
    if ((first & 0xf0) !== 0x80 || second > 127)
      throw new WireError(`not a whole, unmasked frame: ${first.toString(16)} ${second.toString(16)}`);
    const data = await this.reader.take(await this.lengthAfter(second));
    const kind = first & 15;
    if (kind === opcodes.text) return { text: new TextDecoder('utf-8', { fatal: true }).decode(data) };
    if (kind === opcodes.ping) return { ping: data };
    if (kind !== opcodes.close) throw new WireError(`unexpected frame opcode ${kind}`);
    return { close: data.readUInt16BE(0), reason: data.subarray(2).toString() };
  }

  /** Waits for the end of the connection. Throws for any byte before it. */
  async ended(): Promise<void> {
    const rest = await this.reader.rest();
    if (rest.length > 0) throw new WireError(`bytes after the close frame: ${rest.toString('hex')}`);
    this.socket.end();
  }

  private async lengthAfter(second: number): Promise<number> {
    if (second < 126) return second;
    const bytes = await this.reader.take(second === 126 ? 2 : 8);
    const length = bytes.length === 2 ? bytes.readUInt16BE() : Number(bytes.readBigUInt64BE());
    if (length < (second === 126 ? 126 : 65_536))
      throw new WireError(`the length ${length} is encoded in ${bytes.length} bytes, which is not the shortest form`);
    return length;
  }

  private write(kind: number, data: Buffer): void {
    const mask = randomBytes(4);
    const head = data.length < 126 ? [0x80 | data.length] : [0x80 | 126, data.length >> 8, data.length & 255];
    const masked = data.map((byte, index) => byte ^ mask[index % 4]!);
    this.socket.write(Buffer.concat([Buffer.from([0x80 | kind, ...head]), mask, masked]));
  }
}
