import fc from 'fast-check';
import { formatEvent, SseParser, type SseEvent } from './sse.js';

function read(chunks: (string | Uint8Array)[], parser = new SseParser()): SseEvent[] {
  return chunks.flatMap((chunk) => [...parser.push(chunk)]);
}

describe('SseParser', () => {
  it('reads fields, comments, several data lines and every line ending', () => {
    const stream = ': hi\nevent: a\ndata: 1\ndata:2\nid: 7\nretry: 50\n\n\r\ndata: x\r\n\r\ndata\r\rdata:  y\n\n';
    expect(read([stream])).toEqual([
      { event: 'a', data: '1\n2', id: '7', retry: 50 },
      { event: 'message', data: 'x', id: '7', retry: 50 },
      { event: 'message', data: '', id: '7', retry: 50 },
      { event: 'message', data: ' y', id: '7', retry: 50 },
    ]);
  });

  it('ignores empty events, invalid retries, ids with NUL, and a last event without its blank line', () => {
    expect(read(['event: x\n\nretry: 1x\nid: a\u0000\nfoo: 1\nbar\ndata: d\n\ndata: open\n'])).toEqual([
      { event: 'message', data: 'd' },
    ]);
  });

  it('drops a byte order mark and joins characters that are split over two pieces', () => {
    const bytes = Buffer.from('\ufeffdata: é😀\n\n');
    expect(read([...bytes].map((byte) => Uint8Array.of(byte)))).toEqual([{ event: 'message', data: 'é😀' }]);
  });

  it('yields the same events for every split of the stream', () => {
    const part = fc.constantFrom(
      'data: a\n',
      'data:b\r\n',
      'id: 1\r',
      'event: e\n',
      '\n',
      '\r\n',
      '\r',
      ': c\n',
      'x',
      'é',
    );
    fc.assert(
      fc.property(fc.array(part, { maxLength: 30 }), fc.array(fc.nat(40), { maxLength: 12 }), (parts, cuts) => {
        const text = parts.join('');
        const points = [0, ...cuts.filter((cut) => cut < text.length).sort((a, b) => a - b), text.length];
        const pieces = points.slice(1).map((point, index) => text.slice(points[index], point));
        expect(read(pieces)).toEqual(read([text]));
      }),
    );
  });

  it('limits lines and events, and reads a megabyte that arrives byte by byte', () => {
    const limited = () => new SseParser({ maxEventBytes: 20, maxLineBytes: 30 });
    expect(() => read(['data: ', 'x'.repeat(25)], limited())).toThrow(/line/);
    expect(() => read(['data: 123456789\n'.repeat(3)], limited())).toThrow(
      expect.objectContaining({ code: 'remote_invalid_response' }),
    );
    expect(() => read(['data\n'.repeat(21)], limited())).toThrow(/event/);
    expect(read([': ping\n'.repeat(100), 'data: 1\n\n'], limited())).toHaveLength(1);
    const drip = Array.from({ length: 1_000_000 }, () => 'x');
    expect(read(['data: ', ...drip, '\n\n'])[0]?.data).toHaveLength(1_000_000);
  });
});

describe('formatEvent', () => {
  it('writes events that the parser reads', () => {
    expect(formatEvent({ data: '{}', id: '3' })).toBe('id: 3\ndata: {}\n\n');
    const field = fc.stringMatching(/^[^\r\n\0]{1,20}$/u);
    fc.assert(
      fc.property(fc.record({ event: field, data: fc.string(), id: field, retry: fc.nat(99_999) }), (event) => {
        const data = event.data.replace(/\r\n|\r/g, '\n');
        expect(read([formatEvent(event)])).toEqual([{ ...event, data }]);
      }),
    );
  });

  it('lets no field add a line', () => {
    expect(read([formatEvent({ event: 'a\ndata: evil', id: '1\r\n\r\ndata: evil', data: 'ok' })])).toEqual([
      { event: 'adata: evil', data: 'ok', id: '1data: evil' },
    ]);
  });
});
