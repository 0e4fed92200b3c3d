import type { Random } from './random.js';

/** A request before it is encoded. */
export interface Draft {
  method: string;
  path: string;
  headers: [string, string][];
  body?: Buffer;
}

/**
 * Encodes a request, most of the time correctly. `lies` means that the bytes are not a correct HTTP request, so the
 * server need not answer.
 */
export function frame({ method, path, headers, body }: Draft, random: Random): { bytes: Buffer; lies: boolean } {
  const kind = random.chance(0.85) ? 'plain' : random.pick(framings);
  const content = body ?? Buffer.alloc(0);
  const given = body ? [['Content-Length', String(content.length)]] : [];
  const write = (
    lines: string[][],
    after: Buffer,
    version = 'HTTP/1.1',
    lies = false,
  ): { bytes: Buffer; lies: boolean } => {
    const all = [
      ...(headers.some(([name]) => name === 'Host') ? [] : [['Host', 'localhost']]),
      ...headers,
      ...lines,
      ['Connection', 'close'],
    ];
    const fields = all.map(([name, value]) => `${name}: ${value}`).join('\r\n');
    const head = `${method} ${path} ${version}\r\n${fields}\r\n\r\n`;
    return { bytes: Buffer.concat([Buffer.from(head, 'latin1'), after]), lies };
  };
  switch (kind) {
    case 'plain':
      return write(given, content);
    case 'chunked':
      return write([['Transfer-Encoding', 'chunked']], chunks(content, random, ''));
    case 'chunk extensions':
      return write(
        [['Transfer-Encoding', 'chunked']],
        chunks(content, random, `;x=${'y'.repeat(random.whole(2_000))}`),
      );
    case 'false chunk size':
      return write(
        [['Transfer-Encoding', 'chunked']],
        Buffer.concat([Buffer.from('zz\r\n'), content]),
        undefined,
        true,
      );
    case 'endless chunk':
      return write(
        [['Transfer-Encoding', 'chunked']],
        Buffer.concat([Buffer.from('fffff\r\n'), content]),
        undefined,
        true,
      );
    case 'too long':
      return write([['Content-Length', String(content.length + 100)]], content, undefined, true);
    case 'too short':
      return write([['Content-Length', String(Math.max(0, content.length - 3))]], content, undefined, true);
    case 'two lengths':
      return write([...given, ['Content-Length', '3']], content, undefined, true);
    case 'odd length':
      return write(
        [['Content-Length', random.pick(['-1', '1e3', '0x10', '99999999999999999999', ' '])]],
        content,
        undefined,
        true,
      );
    case 'length and chunks':
      return write([...given, ['Transfer-Encoding', 'chunked']], chunks(content, random, ''), undefined, true);
    case 'odd encoding':
      return write(
        [['Transfer-Encoding', random.pick(['gzip', 'chunked, gzip', 'xchunked', 'chunked, chunked'])]],
        content,
        undefined,
        true,
      );
    case 'old version':
      return write(given, content, 'HTTP/1.0');
    case 'no version':
      return write(given, content, random.pick(['HTTP/9.9', 'HTTP/2.0', 'ICY', '']), true);
    case 'bad header':
      return write(
        [...given, [random.pick(['X Y', 'X\u0000', '', 'X\r\nY']), random.pick(['a\u0000b', 'a\r\n b', 'a\rb'])]],
        content,
        undefined,
        true,
      );
    case 'cut off': {
      const whole = write(given, content).bytes;
      return { bytes: whole.subarray(0, random.whole(whole.length)), lies: true };
    }
    case 'noise':
      return { bytes: Buffer.from(Array.from({ length: 200 }, () => random.whole(256))), lies: true };
  }
}

const framings = [
  'chunked',
  'chunked',
  'chunk extensions',
  'false chunk size',
  'endless chunk',
  'too long',
  'too short',
  'two lengths',
  'odd length',
  'length and chunks',
  'odd encoding',
  'old version',
  'no version',
  'bad header',
  'cut off',
  'noise',
] as const;

function chunks(content: Buffer, random: Random, extension: string): Buffer {
  const parts: Buffer[] = [];
  const step = Math.max(1 + random.whole(2_000), Math.ceil(content.length / 500));
  for (let at = 0; at < content.length; at += step) {
    const part = content.subarray(at, at + step);
    parts.push(Buffer.from(`${part.length.toString(16)}${extension}\r\n`), part, Buffer.from('\r\n'));
  }
  return Buffer.concat([...parts, Buffer.from('0\r\n\r\n')]);
}
