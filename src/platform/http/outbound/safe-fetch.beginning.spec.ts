import { gzipSync } from 'node:zlib';
import { client, closeAll, closed, failure, get, http, raw } from '../../../../test/support/clients/outbound.js';

afterEach(closeAll);

const maxBytes = 10;

describe('SafeFetch.beginning', () => {
  it('returns a short answer completely, and reuses its connection', async () => {
    const { url, connections } = await http((_req, res) => res.writeHead(201, { 'x-a': 'b' }).end('short'));
    const fetch = client();
    for (let count = 0; count < 3; count++) {
      const answer = await fetch.beginning(get(url, { maxBytes }));
      expect({ ...answer, body: answer.body.toString() }).toMatchObject({ status: 201, body: 'short', isCut: false });
      expect(answer.headers['x-a']).toBe('b');
    }
    expect(connections).toHaveLength(1);
  });

  it.each([
    ['a declared length', (body: string) => ({ 'content-length': String(body.length) })],
    ['chunks', () => ({})],
  ])('keeps the first bytes of a long answer with %s, and ends its socket', async (_title, headers) => {
    const body = 'x'.repeat(3_000_000);
    const { url, connections } = await http((_req, res) => res.writeHead(200, headers(body)).end(body));
    const answer = await client().beginning(get(url, { maxBytes }));
    expect({ ...answer, body: answer.body.toString() }).toMatchObject({
      status: 200,
      body: 'x'.repeat(10),
      isCut: true,
    });
    await closed(connections[0]!);
  });

  it('ends an endless answer after its first bytes', async () => {
    const { url, connections } = await http((_req, res) => void res.writeHead(200).write('0123456789ABC'));
    const answer = await client().beginning(get(url, { maxBytes }));
    expect(answer.body.toString()).toBe('0123456789');
    await closed(connections[0]!);
  });

  it('returns an empty body for an answer without one', async () => {
    const { url } = await http((_req, res) => res.writeHead(204).end());
    expect(await client().beginning(get(url, { maxBytes }))).toMatchObject({ status: 204, isCut: false });
  });

  it('throws when the answer breaks off too early, or takes too long', async () => {
    const { url } = await raw((socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc'));
    expect((await failure(client().beginning(get(url, { maxBytes })))).code).toBe('remote_transport');
    const slow = await http((_req, res) => void res.writeHead(200).write('abc'));
    expect((await failure(client().beginning(get(slow.url, { maxBytes, deadlineMs: 100 })))).code).toBe(
      'remote_timeout',
    );
    await closed(slow.connections[0]!);
  });

  it('inflates a body that a server compressed without being asked, as far as it was read', async () => {
    const text = Array.from({ length: 5_000 }, (_, index) => `line ${index}`).join('\n');
    const pages: Record<string, Buffer> = { '/short': gzipSync('hi'), '/long': gzipSync(text) };
    const { url } = await http((req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end(pages[req.url!]));
    const read = async (path: string, most: number) => {
      const { body, isCut } = await client().beginning(get(`${url}${path}`, { maxBytes: most }));
      return { text: body.toString(), isCut };
    };
    expect(await read('/short', 100)).toEqual({ text: 'hi', isCut: false });
    const cut = await read('/long', 500);
    expect(text.startsWith(cut.text)).toBe(true);
    expect(cut.text.length).toBeGreaterThan(100);
    expect(cut).toMatchObject({ isCut: true });
    const damaged = await http((_req, res) => res.writeHead(200, { 'content-encoding': 'gzip' }).end('no gzip'));
    expect((await failure(client().beginning(get(damaged.url, { maxBytes: 100 })))).code).toBe(
      'remote_invalid_response',
    );
  });
});
