/*
 * The wire format of protocol buffers (protobuf.dev/programming-guides/encoding): a message is a sequence of fields,
 * each with a tag (its number and its wire type). Only the parts that A2A messages need are supported; a reader skips
 * fields that it does not know.
 */

export const wireTypes = { varint: 0, fixed64: 1, bytes: 2, fixed32: 5 } as const;

/** Thrown for bytes that are not a message; its message says why and quotes nothing. */
export class WireError extends Error {}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** Reads the fields of one message and never reads beyond its end. Throws WireError. */
export class WireReader {
  private at = 0;

  constructor(private readonly bytes: Buffer) {}

  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  tag(): { number: number; wireType: number } {
    const tag = this.unsigned();
    const number = Math.floor(tag / 8);
    if (number === 0 || tag > 0xffff_ffff) throw new WireError('a tag has no valid field number');
    return { number, wireType: tag % 8 };
  }

  /** Reads a length, a tag or a flag. Exact up to 2^53; larger values are too large for any of these. */
  unsigned(): number {
    let value = 0;
    this.eachSeptet((bits, shift) => (value += bits * 2 ** shift));
    return value;
  }

  /** Reads the low 32 bits of a number, with a sign. */
  int32(): number {
    let value = 0;
    this.eachSeptet((bits, shift) => (value |= shift < 32 ? bits << shift : 0));
    return value;
  }

  int64(): bigint {
    let value = 0n;
    this.eachSeptet((bits, shift) => (value |= BigInt(bits) << BigInt(shift)));
    return BigInt.asIntN(64, value);
  }

  /** Reads the next block of bytes, which has its length in front; returns a view of the same memory. */
  block(): Buffer {
    return this.takeBytes(this.unsigned());
  }

  text(): string {
    try {
      return utf8.decode(this.block());
    } catch (error) {
      throw error instanceof WireError ? error : new WireError('a text is not valid UTF-8');
    }
  }

  double(): number {
    return this.takeBytes(8).readDoubleLE();
  }

  skip(wireType: number): void {
    if (wireType === wireTypes.varint) this.unsigned();
    else if (wireType === wireTypes.bytes) this.block();
    else if (wireType === wireTypes.fixed64) this.takeBytes(8);
    else if (wireType === wireTypes.fixed32) this.takeBytes(4);
    else throw new WireError('a field has a wire type that is not supported');
  }

  private eachSeptet(take: (bits: number, shift: number) => void): void {
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = this.bytes[this.at++];
      if (byte === undefined) throw new WireError('it ends in the middle of a field');
      take(byte & 0x7f, shift);
      if (byte < 0x80) return;
    }
    throw new WireError('a number is too long');
  }

  private takeBytes(length: number): Buffer {
    const end = this.at + length;
    if (end > this.bytes.length) throw new WireError('it ends in the middle of a field');
    const taken = this.bytes.subarray(this.at, end);
    this.at = end;
    return taken;
  }
}

/** Writes the fields of one message. */
export class WireWriter {
  private readonly chunks: Uint8Array[] = [];
  private size = 0;

  /** Writes a whole number within 2^53, with a sign. */
  varint(number: number, value: number): void {
    this.tag(number, wireTypes.varint);
    this.raw(varintOf(value));
  }

  double(number: number, value: number): void {
    const bytes = Buffer.allocUnsafe(8);
    bytes.writeDoubleLE(value);
    this.tag(number, wireTypes.fixed64);
    this.raw(bytes);
  }

  block(number: number, bytes: Uint8Array): void {
    this.tag(number, wireTypes.bytes);
    this.raw(varintOf(bytes.length));
    this.raw(bytes);
  }

  text(number: number, text: string): void {
    this.block(number, Buffer.from(text));
  }

  finish(): Buffer {
    return Buffer.concat(this.chunks, this.size);
  }

  private tag(number: number, wireType: number): void {
    this.raw(varintOf(number * 8 + wireType));
  }

  private raw(bytes: Uint8Array): void {
    this.chunks.push(bytes);
    this.size += bytes.length;
  }
}

/** Encodes seven bits in each byte, the lowest first; negative numbers are encoded as 64 bits. */
function varintOf(value: number): Uint8Array {
  if (value >= 0 && value < 0x80) return Uint8Array.of(value);
  const bytes: number[] = [];
  let left = BigInt.asUintN(64, BigInt(value));
  for (; left >= 0x80n; left >>= 7n) bytes.push(Number(left & 0x7fn) | 0x80);
  return Uint8Array.from([...bytes, Number(left)]);
}
