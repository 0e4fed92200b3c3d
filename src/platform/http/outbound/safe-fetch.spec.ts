import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createServer as createTlsServer } from 'node:tls';
import { RialtoError } from '../../../kernel/errors.js';
import type { OutboundPolicy } from './safe-fetch.js';
import { parseAllowList } from './address.js';
import { nextHop } from './safe-redirect.js';
import {
  client,
  closeAll,
  closed,
  failure,
  get,
  http,
  listen,
  read,
} from '../../../../test/support/clients/outbound.js';

afterEach(closeAll);

describe('SafeFetch: plain use', () => {
  it('sends method, headers and body, and requests no content coding', async () => {
    let seen: IncomingMessage | undefined;
    const { url, port } = await http((req, res) => {
      seen = req;
      void read(req).then((body) => res.writeHead(201, { 'x-a': ['1', '2'] }).end(body));
    });
    const sent = get(`${url}/p?q=1#f`, {
      method: 'POST',
      headers: { 'X-Key': 'k', 'Accept-Encoding': 'gzip' },
      body: 'hé',
    });
    const answer = await client().request(sent);
    expect([answer.status, answer.body.toString(), answer.headers['x-a'], answer.url]).toEqual([
      201,
      'hé',
      '1, 2',
      `${url}/p?q=1#f`,
    ]);
    expect([
      seen?.method,
      seen?.url,
      seen?.headers['x-key'],
      seen?.headers['accept-encoding'],
      seen?.headers.host,
    ]).toEqual(['POST', '/p?q=1', 'k', 'identity', `127.0.0.1:${port}`]);
  });

  it('keeps a socket alive: 20 sequential requests use one connection', async () => {
    const { url, connections } = await http((_req, res) => res.end('ok'));
    const fetch = client();
    for (let n = 0; n < 20; n++) await fetch.request(get(url));
    expect(connections.length).toBe(1);
    const credentials = url.replace('//', '//user:secret@');
    expect((await failure(fetch.request(get(credentials)))).code).toBe('url_not_allowed');
  });

  it('limits its pools, and still serves an origin that was evicted', async () => {
    const { port, connections } = await http((_req, res) => res.end('ok'));
    const fetch = client({ resolve: async () => [{ address: '127.0.0.1', family: 4 }] });
    for (let n = 0; n < 520; n++) await fetch.request(get(`http://h${n}.test:${port}/`));
    expect(Reflect.get(fetch, 'origins')).toHaveProperty('size', 512);
    await fetch.request(get(`http://h0.test:${port}/`));
    expect(connections.length).toBe(521);
  });

  it('ends its sockets and running requests when closed', async () => {
    const { url, server, connections } = await http(() => undefined);
    const fetch = client();
    const running = failure(fetch.request(get(url)));
    await once(server, 'request');
    await fetch.close();
    expect((await running).code).toBe('remote_transport');
    await closed(connections[0]!);
    expect((await failure(fetch.request(get(url)))).code).toBe('unavailable');
  });
});

describe('SafeFetch: where bytes may go', () => {
  it('AN-39 abuse 20: refuses every spelling of a private address without a connection', async () => {
    const { port, connections } = await http((_req, res) => res.end('canary'));
    const fetch = client({ list: '' });
    const hosts = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '[::ffff:127.0.0.1]',
      '１２７.0.0.1',
      'localhost',
      'localhost.',
      'a.localhost',
    ];
    for (const host of [...hosts, `user@127.0.0.1`, '0']) {
      const error = await failure(fetch.request(get(`http://${host}:${port}/`)));
      const given = new URL(`http://${host}/`).hostname;
      const text = `the host "${given}" may not be called`;
      expect([host, error.code, error.message]).toEqual([host, 'url_not_allowed', text]);
      expect(() => fetch.checkUrl(`http://${host}:${port}/`)).toThrow(text);
    }
    expect(connections.length).toBe(0);
  });

  it('RE-28 abuse 21: refuses a name when any of its addresses is private', async () => {
    const { port, connections } = await http((_req, res) => res.end('canary'));
    const mixed = [
      { address: '1.1.1.1', family: 4 as const },
      { address: '127.0.0.1', family: 4 as const },
    ];
    for (const answer of [
      mixed,
      [...mixed].reverse(),
      mixed.slice(1),
      [{ address: '::ffff:127.0.0.1', family: 6 as const }],
    ]) {
      const fetch = client({ list: '', resolve: async () => answer });
      const { code, message, hint } = await failure(fetch.request(get(`http://mixed.test:${port}/`)));
      expect([code, message]).toEqual(['url_not_allowed', 'the host "mixed.test" may not be called']);
      expect(hint).toBe('only public addresses may be called; the setting RIALTO_OUTBOUND_ALLOW allows others');
    }
    expect(connections.length).toBe(0);
  });

  it('AN-39 abuse 21: rebinding after the check never reaches the canary; one resolution per connection', async () => {
    const good = await http((_req, res) => res.setHeader('connection', 'close').end('good'), '127.0.0.2');
    // Nothing else listens there, so the port is free.
    const canary = await http((_req, res) => res.end('canary'), '127.0.0.3', good.port);
    let resolutions = 0;
    const resolve = async (): ReturnType<NonNullable<OutboundPolicy['resolve']>> => [
      { address: resolutions++ % 2 === 0 ? '127.0.0.2' : '127.0.0.3', family: 4 },
    ];
    const fetch = client({ list: '127.0.0.2', resolve });
    const outcomes = { good: 0, refused: 0 };
    for (let n = 0; n < 400; n++) {
      fetch.checkUrl(`http://flip.test:${good.port}/`);
      const answer = await fetch.request(get(`http://flip.test:${good.port}/`)).catch((error: RialtoError) => error);
      if (answer instanceof RialtoError) outcomes.refused += Number(answer.code === 'url_not_allowed');
      else outcomes.good += Number(answer.body.toString() === 'good');
    }
    expect(outcomes).toEqual({ good: 200, refused: 200 });
    expect([resolutions, good.connections.length, canary.connections.length]).toEqual([400, 200, 0]);
  });

  it('AN-39: connects to the resolved addresses in turn until one answers, with the Host of the name', async () => {
    const { port } = await http((req, res) => res.end(req.headers.host));
    const resolve: OutboundPolicy['resolve'] = async () => [
      { address: '127.0.0.9', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    const answer = await client({ resolve }).request(get(`http://agent.test:${port}/`));
    expect(answer.body.toString()).toBe(`agent.test:${port}`);
  });

  it('RE-28: a TLS handshake carries the name, and an untrusted certificate is a transport failure', async () => {
    let sni: string | undefined;
    const tls = await listen(
      createTlsServer({
        SNICallback: (name, done) => {
          sni = name;
          done(new Error('no certificate'));
        },
      }),
    );
    tls.server.on('tlsClientError', () => undefined);
    const fetch = client({ resolve: async () => [{ address: '127.0.0.1', family: 4 }], httpsOnly: true });
    expect((await failure(fetch.request(get(`https://agent.test.:${tls.port}/`)))).code).toBe('remote_transport');
    expect(sni).toBe('agent.test');
  });

  it('AN-39: allow-list forms open a private host, an origin or a range, and nothing else', async () => {
    const { port } = await http((_req, res) => res.end('ok'));
    const resolve: OutboundPolicy['resolve'] = async () => [{ address: '127.0.0.1', family: 4 }];
    const cases: [string, string, boolean][] = [
      ['agent.internal', `http://agent.internal:${port}/`, true],
      ['agent.internal', `http://other.internal:${port}/`, false],
      ['*.internal', `http://other.internal:${port}/`, true],
      [`http://127.0.0.1:${port}`, `http://127.0.0.1:${port}/`, true],
      [`http://127.0.0.1:${port}`, `http://other.internal:${port}/`, false],
      [`http://127.0.0.1:${port + 1}`, `http://127.0.0.1:${port}/`, false],
      ['127.0.0.0/8', `http://other.internal:${port}/`, true],
      ['10.0.0.0/8', `http://other.internal:${port}/`, false],
    ];
    for (const [list, url, open] of cases) {
      const outcome = await client({ list, resolve })
        .request(get(url))
        .then(
          () => true,
          (error: RialtoError) => error.code,
        );
      expect([list, url, outcome]).toEqual([list, url, open ? true : 'url_not_allowed']);
    }
  });

  it('RE-28 abuse 23: closed port, unknown name and failing resolver give the same error', async () => {
    const { port, server } = await http(() => undefined);
    await new Promise((resolve) => server.close(resolve));
    const failing: OutboundPolicy['resolve'] = (host) =>
      host === 'none.test' ? Promise.resolve([]) : Promise.reject(new Error('ENOTFOUND unknown.test'));
    const fetch = client({ resolve: failing });
    const urls = [`http://127.0.0.1:${port}/`, 'http://unknown.test/', 'http://none.test/', 'https://unknown.test/'];
    const errors = await Promise.all(urls.map((url) => failure(fetch.request(get(url)))));
    for (const { code, message, data, hint } of errors) {
      expect({ code, message, data, hint }).toEqual({
        code: 'remote_transport',
        message: 'The remote side could not be reached',
      });
    }
    expect(errors[0]?.cause).toHaveProperty('code', 'ECONNREFUSED');
  });

  it('RE-28 abuse 25: a resolver that never answers fails within its limit', async () => {
    const fetch = client({ resolve: () => new Promise(() => undefined) });
    expect((await failure(fetch.request(get('http://silent.test/')))).code).toBe('remote_transport');
    expect((await failure(fetch.request(get('http://silent.test/', { deadlineMs: 50 })))).code).toBe('remote_timeout');
  });
});

describe('SafeFetch: redirects', () => {
  const statuses = [301, 302, 303, 307, 308];
  const targets = [
    'http://169.254.169.254/latest/',
    'file:///etc/passwd',
    'gopher://127.0.0.1:70/',
    '//10.0.0.1/',
    'http://user@1.1.1.1/',
    'http://',
    'javascript:1',
  ];

  it.each(statuses)('AN-39 abuse 22: a %i to a forbidden target is refused at its hop', async (status) => {
    const canary = await http((_req, res) => res.end('canary'));
    const { url, port } = await http((req, res) =>
      res.writeHead(status, { location: decodeURIComponent(req.url!.slice(1)) }).end(),
    );
    const fetch = client({ list: `http://127.0.0.1:${port}` });
    for (const target of [...targets, canary.url, `http://localhost:${canary.port}/`]) {
      const error = await failure(fetch.request(get(`${url}/${encodeURIComponent(target)}`, { redirects: 3 })));
      expect([target, error.code]).toEqual([target, 'url_not_allowed']);
    }
    expect(canary.connections).toHaveLength(0);
  });

  it.each(statuses)('AN-39 abuse 22: a %i is returned as it is for a POST and by default', async (status) => {
    let hits = 0;
    const { url } = await http((_req, res) => {
      hits++;
      res.writeHead(status, { location: '/next', refresh: '0; url=/next' }).end('moved');
    });
    const fetch = client();
    expect((await fetch.request(get(url))).status).toBe(status);
    expect((await fetch.request(get(url, { method: 'POST', body: 'x', redirects: 3 }))).status).toBe(status);
    expect((await fetch.stream(get(url))).status).toBe(status);
    expect(hits).toBe(3);
  });

  it('AN-39: follows at most the given number of hops, then returns the redirect', async () => {
    const { url } = await http((req, res) =>
      res.writeHead(302, { location: `/${Number(req.url!.slice(1)) + 1}` }).end(),
    );
    const fetch = client();
    expect(await fetch.request(get(`${url}/0`, { redirects: 3 }))).toMatchObject({ status: 302, url: `${url}/3` });
    const streamed = await fetch.stream(get(`${url}/0`, { redirects: 2 }));
    expect([streamed.status, streamed.url, (await read(streamed.body)).length]).toEqual([302, `${url}/2`, 0]);
  });

  it('AN-39 abuse 22: credentials stay at their origin', async () => {
    const seen: IncomingMessage['headers'][] = [];
    const other = await http((req, res) => {
      seen.push(req.headers);
      res.end('there');
    });
    const { url } = await http((req, res) => {
      seen.push(req.headers);
      res.writeHead(302, { location: req.url === '/a' ? '/b' : other.url }).end();
    });
    const headers = {
      authorization: 'Bearer s',
      cookie: 'c=1',
      'x-api-key': 'k',
      'X-My-Odd-Secret': 'o',
      accept: 'application/json',
    };
    const answer = await client().request(get(`${url}/a`, { headers, redirects: 3 }));
    expect(answer.body.toString()).toBe('there');
    expect(seen[1]).toMatchObject({ authorization: 'Bearer s', 'x-api-key': 'k' });
    expect(seen[2]).toMatchObject({ accept: 'application/json' });
    expect(Object.keys(seen[2]!).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
  });
});

describe('nextHop', () => {
  it('AN-39 abuse 22: never goes from https to http, and never sends credentials to another origin', () => {
    const from = { url: new URL('https://a.test/x'), headers: { authorization: 's', accept: '*/*' } };
    const allow = parseAllowList('');
    const to = (location: string) => nextHop({ status: 302, headers: { location } }, from, { allow, httpsOnly: false });
    expect(() => to('http://a.test/')).toThrow('URL not allowed');
    expect(to('/y')).toEqual({ url: new URL('https://a.test/y'), headers: from.headers });
    expect(to('https://a.test:444/')?.headers).toEqual({ accept: '*/*' });
  });
});

describe('SafeFetch: header injection', () => {
  const bad: [string, Record<string, string>][] = [
    ['CR LF in a value', { 'x-a': 'a\r\nx-evil: 1' }],
    ['LF in a credential', { authorization: 'Bearer a\nx-evil: 1' }],
    ['NUL', { 'x-a': 'a\0b' }],
    ['latin-1', { 'x-a': 'é' }],
    ['CR LF in a name', { 'x-a\r\nx-evil': '1' }],
    ['a pseudo header', { ':authority': 'evil' }],
    ['Host', { Host: 'evil' }],
    ['Content-Length', { 'Content-Length': '1' }],
    ['Transfer-Encoding', { 'transfer-encoding': 'chunked' }],
    ['Connection', { connection: 'upgrade' }],
  ];

  it.each(bad)('abuse 27: %s never reaches the wire, nor the error text', async (_title, headers) => {
    const { url, connections } = await http((_req, res) => res.end());
    const error = await failure(client().request(get(url, { headers })));
    expect([error.code, error.message]).toEqual(['invalid_params', 'A request header is not allowed']);
    expect(connections.length).toBe(0);
  });

  it.each(['get', 'CONNECT', 'TRACE', 'GET / HTTP/1.1\r\nx:', ''])('abuse 27: method %j is refused', async (method) => {
    expect((await failure(client().request(get('http://127.0.0.1:1/', { method })))).code).toBe('invalid_params');
  });
});
