/*
 * The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message is a sequence of fields,
 * each with a tag (its number and its wire type). Only the parts that A2A messages need are supported; a reader skips
 * fields that it does not know.
 */

export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Thrown for bytes that are not a message; its message says why and quotes nothing. */
export class WireError extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the fields of a message and of the messages in it, and never reads beyond their ends. Throws WireError. */
export class WireReader {
  private at = 0;
  private end: number;

  constructor(private readonly bytes: Buffer) {
    this.end = bytes.length;
  }

  get isAtEnd(): boolean {
    return this.at >= this.end;
  }

  tag(): { number: number; wireType: number } {
    const tag = this.unsigned();
    const number = Math.floor(tag / 8);
    if (number === 0 || tag > 0xffff_ffff) throw new WireError('a tag has no valid field number');
    return { number, wireType: tag % 8 };
  }

  /** Reads a length, a tag or a flag. Exact up to 2^53; larger values are too large for any of these. */
  unsigned(): number {
    let byte = this.byte();
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = this.byteAt(shift);
      value += (byte & 0x7f) * 2 ** shift;
    }
    return value;
  }

  /** Reads the low 32 bits of a number, with a sign. */
  int32(): number {
    let byte = this.byte();
    let value = byte & 0x7f;
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = this.byteAt(shift);
      value |= shift < 32 ? (byte & 0x7f) << shift : 0;
    }
    return value;
  }

  int64(): bigint {
    let byte = this.byte();
    let value = BigInt(byte & 0x7f);
    for (let shift = 7; byte >= 0x80; shift += 7) {
      byte = this.byteAt(shift);
      value |= BigInt(byte & 0x7f) << BigInt(shift);
    }
    return BigInt.asIntN(64, value);
  }

  /** Reads the next block, which has its length in front, with a function that sees its end as the end of all. */
  inBlock<Result>(read: () => Result): Result {
    const outer = this.end;
    this.end = this.endOf(this.unsigned());
    const result = read();
    this.at = this.end;
    this.end = outer;
    return result;
  }

  /** Reads the next block as bytes; returns a view of the same memory. */
  block(): Buffer {
    const start = this.skipTo(this.endOf(this.unsigned()));
    return this.bytes.subarray(start, this.at);
  }

  text(): string {
    const start = this.skipTo(this.endOf(this.unsigned()));
    const text = this.bytes.toString('utf8', start, this.at);
    // The text of invalid bytes has this character; others may have it too.
    if (text.includes('\ufffd')) requireUtf8(this.bytes.subarray(start, this.at));
    return text;
  }

  double(): number {
    return this.bytes.readDoubleLE(this.skipTo(this.endOf(8)));
  }

  skip(wireType: number): void {
    if (wireType === wireTypes.varint) this.unsigned();
    else if (wireType === wireTypes.bytes) this.skipTo(this.endOf(this.unsigned()));
    else if (wireType === wireTypes.fixed64) this.skipTo(this.endOf(8));
    else if (wireType === wireTypes.fixed32) this.skipTo(this.endOf(4));
    else throw new WireError('a field has a wire type that is not supported');
  }

  private byte(): number {
    if (this.at >= this.end) throw new WireError('it ends in the middle of a field');
    return this.bytes[this.at++]!;
  }

  /** Reads a byte of a number; `shift` is the number of bits before it. */
  private byteAt(shift: number): number {
    if (shift >= 70) throw new WireError('a number is too long');
    return this.byte();
  }

  private endOf(length: number): number {
    const end = this.at + length;
    if (end > this.end) throw new WireError('it ends in the middle of a field');
    return end;
  }

  /** Returns the index before the move. */
  private skipTo(end: number): number {
    const start = this.at;
    this.at = end;
    return start;
  }
}

function requireUtf8(bytes: Uint8Array): void {
  try {
    utf8.decode(bytes);
  } catch {
    throw new WireError('a text is not valid UTF-8');
  }
}

/**
 * Writes a message from its end to its beginning, because the length of a block stands before its content. So the last
 * field must be written first.
 */
export class WireWriter {
  private bytes = Buffer.allocUnsafe(256);
  private start = this.bytes.length;

  /** Writes a whole number within 2^53, with a sign. */
  varint(number: number, value: number): void {
    this.number(value);
    this.tag(number, wireTypes.varint);
  }

  double(number: number, value: number): void {
    const at = this.room(8);
    this.bytes.writeDoubleLE(value, at);
    this.tag(number, wireTypes.fixed64);
  }

  block(number: number, bytes: Uint8Array): void {
    const at = this.room(bytes.length);
    this.bytes.set(bytes, at);
    this.lengthAndTag(number, bytes.length);
  }

  text(number: number, text: string): void {
    const length = Buffer.byteLength(text);
    const at = this.room(length);
    this.bytes.write(text, at);
    this.lengthAndTag(number, length);
  }

  /** Writes a block with the fields that a function writes. */
  inBlock(number: number, write: () => void): void {
    const before = this.length;
    write();
    this.lengthAndTag(number, this.length - before);
  }

  finish(): Buffer {
    return this.bytes.subarray(this.start);
  }

  private get length(): number {
    return this.bytes.length - this.start;
  }

  private lengthAndTag(number: number, length: number): void {
    this.number(length);
    this.tag(number, wireTypes.bytes);
  }

  private tag(number: number, wireType: number): void {
    this.number(number * 8 + wireType);
  }

  /** Encodes seven bits in each byte, the lowest first; negative numbers are encoded as 64 bits. */
  private number(value: number): void {
    if (value >= 0 && value < 0x80) {
      const at = this.room(1);
      this.bytes[at] = value;
      return;
    }
    const septets: number[] = [];
    let left = BigInt.asUintN(64, BigInt(value));
    for (; left >= 0x80n; left >>= 7n) septets.push(Number(left & 0x7fn) | 0x80);
    septets.push(Number(left));
    const at = this.room(septets.length);
    this.bytes.set(septets, at);
  }

  /** Makes room for so many bytes; returns where they begin. */
  private room(length: number): number {
    if (length > this.start) {
      const larger = Buffer.allocUnsafe(2 * this.bytes.length + length);
      const start = larger.length - this.length;
      this.bytes.copy(larger, start, this.start);
      [this.bytes, this.start] = [larger, start];
    }
    return (this.start -= length);
  }
}
