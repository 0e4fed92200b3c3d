import { callAgent } from '../../src/a2a-client/client.js';
import { closeOpened, closing, stub } from '../support/clients/bridge.js';
import { all, clientOf, dialects, failure, fast } from '../support/clients/rialto-client.js';
import { http as httpServer } from '../support/clients/outbound.js';
import { startSdkGrpcAgent } from '../support/stubs/sdk-agents.js';
import * as does from '../support/stubs/stub-behaviours.js';
import type { Behaviour } from '../support/stubs/stub-call.js';
import * as hostile from '../support/stubs/stub-hostile.js';

afterEach(closeOpened);

describe('AN-39 the addresses that the client may use', () => {
  it('AN-39 refuses a private address without an allow list', async () => {
    const agent = await stub({ behaviour: does.text('ok') });
    for (const url of [agent.url, 'http://169.254.169.254', 'http://localhost:1', 'http://[::1]:1']) {
      const { code, message } = await failure(callAgent(url, 'hi', { allowHttp: true }));
      const text = `the host "${new URL(url).hostname}" may not be called`;
      const hint = 'only public addresses may be called; the option `allow` allows others';
      expect([code, message]).toEqual(['url_not_allowed', `${text}: ${hint}`]);
    }
    expect(agent.cardRequests).toHaveLength(0);
  });

  it('AN-39 refuses a card with a private address, a redirect to one, and plain http to a public host', async () => {
    const agent = await stub();
    agent.card.supportedInterfaces = [
      { url: 'http://169.254.169.254/', protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    ];
    const only = { ...fast, allow: agent.url };
    expect((await failure(callAgent(agent.url, 'hi', only))).code).toBe('url_not_allowed');
    const canary = await stub();
    agent.set(hostile.redirect(302, canary.cardUrl), 'card');
    expect((await failure(callAgent(agent.url, 'hi', only))).code).toBe('url_not_allowed');
    expect(canary.cardRequests).toHaveLength(0);
    expect((await failure(callAgent('http://example.com', 'hi'))).code).toBe('url_not_allowed');
  });

  it('AN-39, abuse 22: a card may redirect three times, a request never', async () => {
    const agent = await stub({ behaviour: does.text('ok') });
    agent.set(hostile.redirectChain(3, does.serveCard), 'card');
    expect(await callAgent(agent.url, 'hi', fast)).toBe('ok');
    const canary = await stub({ behaviour: does.text('stolen') });
    agent.set(hostile.redirect(307, canary.url));
    expect((await failure(callAgent(agent.url, 'hi', fast))).httpStatus).toBe(307);
    expect(canary.requests).toHaveLength(0);
  });

  it('AN-39 gRPC connections obey the same rules', async () => {
    const agent = closing(await startSdkGrpcAgent());
    const client = clientOf(agent, { allow: agent.url });
    expect((await failure(client.send('hi'))).code).toBe('url_not_allowed');
  });
});

describe('hostile agents', () => {
  it.each([
    ['a2a_timeout', hostile.hang],
    ['a2a_timeout', hostile.drip()],
    ['remote_transport', hostile.resetAtOnce],
    ['remote_transport', hostile.resetMidBody],
    ['remote_transport', hostile.halfClose],
    ['remote_invalid_response', hostile.html()],
    ['remote_invalid_response', hostile.emptyObject],
  ] as [string, Behaviour][])('F27, F28, F29, F30: %s', async (code, behaviour) => {
    const timeoutMs = code === 'a2a_timeout' ? 2_000 : 20_000;
    const codes = dialects.map(async (speaks) => {
      const agent = await stub({ card: speaks.startsWith('v1') ? 'v1' : 'v03', speaks: [speaks], behaviour });
      return (await failure(callAgent(agent.url, 'hi', { ...fast, timeoutMs }))).code;
    });
    expect(await Promise.all(codes)).toEqual(dialects.map(() => code));
  });

  it.each(hostile.wrongEnvelopeKinds)('F29: %s', async (kind) => {
    const agent = await stub({ behaviour: hostile.wrongEnvelope(kind) });
    const outcome = callAgent(agent.url, 'hi', { ...fast, timeoutMs: 20_000 });
    if (kind === 'task-of-another-request') return expect(await outcome).toBe('ok');
    // An unknown state is not an end. The task of the stub has ended, so the next poll gets its end.
    if (kind === 'unknown-state') return expect(await outcome).toBe('ok');
    expect(['remote_invalid_response', 'remote_error']).toContain((await failure(outcome)).code);
  });

  it.each([
    ['an endless line', hostile.flood('x'.repeat(65_536)), 'a2a_response_too_large'],
    ['an endless event', hostile.flood(`data: ${'x'.repeat(65_536)}\n`), 'a2a_response_too_large'],
    ['a million tiny events', hostile.flood('data: {"a":1}\n\n'), 'remote_invalid_response'],
    ['endless comments', hostile.flood(`:${' '.repeat(60_000)}\n\n`), 'a2a_response_too_large'],
    ['html', hostile.html(), 'remote_invalid_response'],
  ] as [string, Behaviour, string][])('abuse 26, F30: a stream of %s', async (_name, behaviour, code) => {
    const agent = await stub({ behaviour });
    expect((await failure(all(clientOf(agent).stream('hi')))).code).toBe(code);
  });

  it('RE-89 an error in the stream is the error of the remote agent', async () => {
    const agent = await stub({ behaviour: does.jsonrpcError(-32004, 'no streams here') });
    const error = await failure(all(clientOf(agent).stream('hi')));
    expect([error.code, error.remoteCode]).toEqual(['remote_error', -32004]);
  });

  it('a caller that leaves ends the call', async () => {
    const agent = await stub({ behaviour: hostile.hang });
    const caller = new AbortController();
    const failed = failure(callAgent(agent.url, 'hi', { ...fast, signal: caller.signal }));
    await agent.waitForRequests(1);
    caller.abort();
    expect((await failed).code).toBe('canceled');
    expect(await agent.closed()).toHaveLength(1);
  });

  it('AN-39 a host name that resolves to loopback is refused, which also stops DNS rebinding', async () => {
    const server = await httpServer((_request, response) => response.end('{}'));
    const error = await failure(
      callAgent(`http://localhost:${server.port}`, 'hi', { allow: 'agent.internal', allowHttp: true }),
    );
    expect(error.code).toBe('url_not_allowed');
    expect(server.connections).toHaveLength(0);
  });
});
