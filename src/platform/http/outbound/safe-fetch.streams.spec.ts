import { gzipSync } from 'node:zlib';
import type { OutboundPolicy } from './safe-fetch.js';
import { client, closeAll, closed, failure, get, http, read } from '../../../../test/support/clients/outbound.js';

afterEach(closeAll);

describe('SafeFetch: streams', () => {
  it('delivers chunks as they arrive, slows down a fast server and releases the socket at the end', async () => {
    const { url, connections } = await http((_req, res) => res.end(Buffer.alloc(4_000_000, 'x')));
    const fetch = client();
    const { body } = await fetch.stream(get(url, { maxBytes: 5_000_000 }));
    let size = 0;
    let largest = 0;
    for await (const chunk of body) {
      size += chunk.length;
      largest = Math.max(largest, chunk.length);
      for (let turn = 0; turn < 20; turn++) await new Promise(setImmediate);
    }
    expect(size).toBe(4_000_000);
    expect(largest).toBeLessThan(300_000);
    await fetch.request(get(url, { maxBytes: 5_000_000 }));
    expect(connections.length).toBe(1);
  });

  it('ends the socket when the reader stops, reads nothing or destroys the body', async () => {
    const { url, connections } = await http((_req, res) => void res.write('a'));
    const fetch = client();
    for await (const chunk of (await fetch.stream(get(url))).body) {
      expect(chunk.toString()).toBe('a');
      break;
    }
    (await fetch.stream(get(url))).body.destroy();
    await fetch.stream(get(url, { deadlineMs: 200 }));
    await Promise.all(connections.map(closed));
    expect(connections.length).toBe(3);
  });

  it('abuse 26: silence longer than idleMs is remote_timeout', async () => {
    const { url, connections } = await http((_req, res) => void res.write('data: 1\n\n'));
    const { body } = await client().stream({ ...get(url), idleMs: 200 });
    expect((await failure(read(body))).code).toBe('remote_timeout');
    await closed(connections[0]!);
  });

  it('abuse 26: a reader slower than idleMs does not count as a silent remote', async () => {
    const { url } = await http((_req, res) => res.end(Buffer.alloc(4_000_000)));
    const { body } = await client().stream({ ...get(url, { maxBytes: 5_000_000 }), idleMs: 50 });
    let size = 0;
    for await (const chunk of body) {
      if (size === 0) await new Promise((resolve) => setTimeout(resolve, 250));
      size += chunk.length;
    }
    expect(size).toBe(4_000_000);
  });

  it('a request that is abandoned while it waits for its socket is never sent, and later ones are', async () => {
    let release: (() => void) | undefined;
    const paths: (string | undefined)[] = [];
    const { port, connections } = await http((req, res) => {
      paths.push(req.url);
      res.end('ok');
    });
    const first = new Promise<void>((done) => (release = done));
    const resolve: OutboundPolicy['resolve'] = async () => {
      await first;
      return [{ address: '127.0.0.1', family: 4 }];
    };
    const fetch = client({ resolve });
    const late = await failure(fetch.request(get(`http://slow.test:${port}/late`, { deadlineMs: 50 })));
    expect(late.code).toBe('remote_timeout');
    release?.();
    expect((await fetch.request(get(`http://slow.test:${port}/next`))).status).toBe(200);
    expect([paths, connections.length]).toEqual([['/next'], 1]);
  });

  it('requests beyond the number of sockets wait their turn, and abandoned ones are not sent', async () => {
    const held: (() => void)[] = [];
    let full: (() => void) | undefined;
    const { url, connections } = await http((req, res) => {
      held.push(() => res.end(req.url));
      if (held.length === 512) full?.();
      if (held.length > 512) res.end(req.url);
    });
    const fetch = client();
    const isFull = new Promise<void>((resolve) => (full = resolve));
    const many = Array.from({ length: 512 }, () => fetch.request(get(url)));
    await isFull;
    const extra = fetch.request(get(`${url}/extra`));
    const given = await failure(fetch.request(get(`${url}/given-up`, { deadlineMs: 20 })));
    expect(given.code).toBe('remote_timeout');
    const next = fetch.request(get(`${url}/next`));
    for (const answer of held.slice()) answer();
    expect((await Promise.all(many)).length).toBe(512);
    expect([(await extra).body.toString(), (await next).body.toString()]).toEqual(['/extra', '/next']);
    expect([held.length, connections.length]).toEqual([514, 512]);
    const origins = Reflect.get(fetch, 'origins') as Map<string, { idle: boolean }>;
    expect(origins.get(url)?.idle).toBe(true);
  });
});

describe('SafeFetch.asFetch', () => {
  const limits = { deadlineMs: 60_000, maxBytes: 100_000 };

  it('works as a fetch: bodies of every kind, and headers added at the last moment for the URL', async () => {
    const { url } = await http((req, res) => {
      void read(req).then((body) =>
        res.end(
          JSON.stringify([req.method, req.headers['content-type'], req.headers['authorization'], body.toString()]),
        ),
      );
    });
    const fetch = client().asFetch({ ...limits, headers: async (to) => ({ Authorization: `Bearer ${to.pathname}` }) });
    const cases: [Parameters<typeof fetch>, unknown[]][] = [
      [[`${url}/a`], ['GET', null, 'Bearer /a', '']],
      [
        [
          new URL(`${url}/b`),
          { method: 'post', body: '{}', headers: { 'Content-Type': 'application/json', authorization: 'mine' } },
        ],
        ['POST', 'application/json', 'Bearer /b', '{}'],
      ],
      [
        [`${url}/c`, { method: 'POST', body: new URLSearchParams({ a: 'b' }), headers: new Headers() }],
        ['POST', 'application/x-www-form-urlencoded;charset=UTF-8', 'Bearer /c', 'a=b'],
      ],
      [
        [new Request(`${url}/d`, { method: 'PUT', body: 'x', headers: [['content-type', 'text/x']] })],
        ['PUT', 'text/x', 'Bearer /d', 'x'],
      ],
      [
        [`${url}/e`, { method: 'POST', body: new Uint8Array([65]), headers: [['content-type', 'text/y']] }],
        ['POST', 'text/y', 'Bearer /e', 'A'],
      ],
    ];
    for (const [args, expected] of cases) {
      const response = await fetch(...args);
      expect([response.ok, await response.json()]).toEqual([true, expected]);
    }
  });

  it('AN-39 abuse 20 abuse 22: refuses before credentials are made, and returns a 3xx as it is', async () => {
    const headers = jest.fn(() => ({}));
    await expect(client().asFetch({ ...limits, headers })('http://169.254.169.254/')).rejects.toMatchObject({
      code: 'url_not_allowed',
    });
    expect(headers).not.toHaveBeenCalled();
    const { url } = await http((_req, res) => res.writeHead(302, { location: 'http://169.254.169.254/' }).end());
    const response = await client().asFetch(limits)(url, { redirect: 'follow' });
    expect([response.status, response.url, await response.text()]).toEqual([302, `${url}/`, '']);
  });

  it('streams server-sent events as they arrive, and null-body statuses without a body', async () => {
    let answer: (() => void) | undefined;
    const { url } = await http((req, res) => {
      if (req.url === '/none') return void res.writeHead(204).end();
      res.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: 1\n\n');
      answer = () => res.end('data: 2\n\n');
    });
    const fetch = client().asFetch(limits);
    const { body, headers } = await fetch(url);
    const reader = body!.getReader();
    expect(Buffer.from((await reader.read()).value ?? '').toString()).toBe('data: 1\n\n');
    answer?.();
    expect(Buffer.from((await reader.read()).value ?? '').toString()).toBe('data: 2\n\n');
    expect([(await reader.read()).done, headers.get('content-type')]).toEqual([true, 'text/event-stream']);
    expect((await fetch(`${url}/none`)).body).toBeNull();
  });

  it('abuse 24 abuse 25: enforces the limits while the body streams', async () => {
    const { url, connections } = await http((req, res) => {
      if (req.url === '/bomb')
        return void res.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(1_000_000)));
      const drip = setInterval(() => res.write(req.url === '/drip' ? '.' : Buffer.alloc(20_000)), 10);
      res.on('close', () => clearInterval(drip));
    });
    const text = async (path: string, deadlineMs: number): Promise<string> =>
      (await client().asFetch({ ...limits, deadlineMs })(url + path)).text();
    await expect(text('/bomb', 10_000)).rejects.toMatchObject({ code: 'remote_invalid_response' });
    await expect(text('/endless', 10_000)).rejects.toMatchObject({ code: 'remote_invalid_response' });
    await expect(text('/drip', 200)).rejects.toMatchObject({ code: 'remote_timeout' });
    await Promise.all(connections.slice(1).map(closed));
  });

  it("rejects with the caller's reason, or `canceled` by the client; a cancelled body ends its socket", async () => {
    const { url, connections, server } = await http((_req, res) => void res.write('a'));
    const callerAbort = new AbortController();
    const clientAbort = new AbortController();
    const fetch = client().asFetch({ ...limits, signal: clientAbort.signal });
    const first = await fetch(url, { signal: callerAbort.signal });
    const broken = first.text();
    const reason = new Error('mine');
    callerAbort.abort(reason);
    await expect(broken).rejects.toBe(reason);
    await expect(fetch(url, { signal: callerAbort.signal })).rejects.toBe(reason);
    await (await fetch(url)).body!.cancel();
    await Promise.all(connections.map(closed));
    const last = (await fetch(url)).text();
    clientAbort.abort();
    await expect(last).rejects.toMatchObject({ code: 'canceled' });
    await Promise.all(connections.map(closed));
    expect(server.listening).toBe(true);
  });
});
