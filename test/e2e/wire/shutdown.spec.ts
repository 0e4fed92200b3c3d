import { publish, userMessage } from '../../support/clients/a2a.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import type { GatewayProcess } from '../../support/gateway/process.js';
import { requestText, StrictConnection, type StrictRequest } from '../../support/clients/strict-http.js';

describe('a stopping process, byte by byte', () => {
  let gateway: TestGateway;
  let bearer: Record<string, string>;
  let process: GatewayProcess;
  let url: string;

  beforeAll(async () => {
    gateway = await startTestGateway();
    bearer = { authorization: `Bearer ${gateway.token}` };
    await publish(gateway, { name: 'slow', executor: { kind: 'echo', delayMs: 4_000 } });
    await publish(gateway, { name: 'box', executor: { kind: 'mailbox' } });
  });
  beforeEach(async () => {
    process = gateway.beside();
    url = await process.ready;
  });
  afterAll(() => gateway.close());

  const version: StrictRequest = { path: '/version' };
  const slow = (): StrictRequest => ({
    path: '/a2a/agents/slow',
    headers: { ...bearer, 'a2a-version': '1.0' },
    body: { jsonrpc: '2.0', id: 'slow', method: 'SendMessage', params: { message: userMessage('hello') } },
  });
  const served = { status: 200, body: expect.stringContaining('"id":"slow"') };
  const open = (): Promise<StrictConnection> => StrictConnection.open(url);
  /** Sends a request and waits until the process works on it. */
  const begun = async (...requests: StrictRequest[]): Promise<StrictConnection> => {
    const one = await open();
    const count = async (): Promise<number> =>
      (await gateway.sql(`select count(*)::int as count from a2a_tasks`))[0].count as number;
    const before = await count();
    one.write(requests.map(requestText).join(''));
    while ((await count()) === before) await new Promise(setImmediate);
    return one;
  };
  const stopped = async (): Promise<void> => {
    const { code, stderr } = await process.ended;
    // The second line is logged only when the stop takes longer than a second.
    expect([code, stderr.filter((line) => !/draining|waiting for/.test(line))]).toEqual([0, []]);
  };

  it('completes a slow answer, announces the close, and ends idle connections', async () => {
    const unused = await open();
    const idle = await open();
    expect(await idle.exchange(version)).toMatchObject({ status: 200 });
    const busy = await begun(slow());
    const piped = await begun(slow(), version, slow());
    process.child.kill('SIGTERM');
    await Promise.all([unused.ended(), idle.ended()]);
    expect(await busy.response()).toMatchObject({ ...served, headers: { connection: 'close' } });
    await busy.ended();
    expect(await piped.response()).toMatchObject(served);
    expect(await piped.response()).toMatchObject({ status: 200, body: expect.stringContaining('version') });
    expect(await piped.response()).toMatchObject({ ...served, headers: { connection: 'close' } });
    await piped.ended();
    await stopped();
  });

  it('serves requests that arrive after a slow one during the stop', async () => {
    const [idle, busy] = [await open(), await begun(slow())];
    process.child.kill('SIGTERM');
    await idle.ended();
    busy.write(requestText(version));
    expect(await busy.response()).toMatchObject(served);
    expect(await busy.response()).toMatchObject({ status: 200, headers: { connection: 'close' } });
    await busy.ended();
    await stopped();
  });

  it('sends the rest of a response that its client has not read yet', async () => {
    const [idle, one] = [await open(), await open()];
    const document: StrictRequest = { path: '/docs-json' };
    const { body } = await one.exchange(document);
    one.pause();
    const count = Math.ceil(30_000_000 / body.length);
    one.write(requestText(document).repeat(count));
    await one.written();
    expect(await idle.exchange(version)).toMatchObject({ status: 200 });
    process.child.kill('SIGTERM');
    await idle.ended();
    one.resume();
    for (let left = count; left > 0; left--) {
      const response = await one.response();
      expect([response.status, response.body === body]).toEqual([200, true]);
      if (response.headers.connection === 'close') break;
    }
    await one.ended();
    await stopped();
  });

  it('answers workers that wait at a mailbox', async () => {
    const [idle, one] = [await open(), await open()];
    one.send({ method: 'POST', path: '/api/mailbox/box/lease?waitMs=30000', headers: bearer });
    await one.written();
    const busy = await begun(slow());
    process.child.kill('SIGTERM');
    await idle.ended();
    expect((await one.response('POST')).status).toBe(503);
    await one.ended();
    expect(await busy.response()).toMatchObject(served);
    await stopped();
  });

  it('reads a request that has begun, and answers it', async () => {
    const [idle, busy, one] = [await open(), await begun(slow()), await open()];
    const text = requestText({ path: '/api/orgs', headers: bearer, body: { slug: 7 } });
    one.write(text.slice(0, -5));
    await one.written();
    expect(await idle.exchange(version)).toMatchObject({ status: 200 });
    process.child.kill('SIGTERM');
    await idle.ended();
    one.write(text.slice(-5));
    expect(await one.response()).toMatchObject({ status: 400, headers: { connection: 'close' } });
    await one.ended();
    expect(await busy.response()).toMatchObject(served);
    await stopped();
  });
});
