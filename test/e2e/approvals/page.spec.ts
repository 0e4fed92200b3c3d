import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe('AN-60 the page of an approval', () => {
  let gateway: TestGateway;
  let upstream: TestUpstream;
  let bob: string;
  let approver: string;
  let count = 0;

  beforeAll(async () => {
    gateway = await startTestGateway();
    upstream = await TestUpstream.start();
    await gateway.call('POST', '/api/mcp/servers', { id: 'up', url: upstream.url });
    const text = '@ask forbid(principal, action == Action::"mcp_call", resource == Tool::"up__echo");';
    await gateway.call('POST', '/api/policies', { name: 'ask-admins', text });
    bob = await gateway.tokenOf('default', 'bob');
    approver = await gateway.tokenOf('default', 'ada', 'admin');
  });
  afterAll(async () => {
    await gateway.close();
    await upstream.close();
  });

  const call = (text: string) => gateway.rpc('tools/call', { name: 'up__echo', arguments: { text } }, bob);
  const ask = async (text = `words ${++count}`): Promise<string> => (await call(text)).error.data.approvalUrl;
  const basic = (token: string) => ({ authorization: `Basic ${Buffer.from(`me:${token}`).toString('base64')}` });
  const open = (url: string, headers: Record<string, string> = basic(approver)) => fetch(url, { headers });
  const decide = (url: string, decision: string, headers: Record<string, string> = {}) =>
    fetch(url, {
      method: 'POST',
      headers: { ...basic(approver), ...headers },
      body: new URLSearchParams({ decision, reason: 'seen' }),
    });

  it('shows the call, takes one decision, and refuses the second use with 409', async () => {
    const url = await ask('once <b>');
    const page = await open(url);
    expect(page.status).toBe(200);
    const html = await page.text();
    expect(html).toContain('once &lt;b&gt;');
    expect(html).toContain('user:bob');
    expect(html).toContain('ask-admins');
    const own = { origin: gateway.url, 'sec-fetch-site': 'same-origin' };
    const decided = await decide(url, 'approve', own);
    expect([decided.status, await decided.text()]).toEqual([200, expect.stringContaining('The call is approved')]);
    expect((await decide(url, 'approve', own)).status).toBe(409);
    expect((await decide(url, 'deny')).status).toBe(409);
    expect(await (await open(url)).text()).not.toContain('<form');
    expect((await call('once <b>')).result).toBeDefined();
    expect((await call('once <b>')).error.data.code).toBe('approval_required');
    expect((await decide(url, 'approve')).status).toBe(409);
  });

  it('lives 15 minutes', async () => {
    const url = await ask();
    const [{ seconds }] = await gateway.sql(
      'select extract(epoch from expires_at - requested_at)::int as seconds from approvals order by id desc limit 1',
    );
    expect(seconds).toBe(900);
    await gateway.sql(`update approvals set expires_at = now() where state = 'pending'`);
    expect(await (await open(url)).text()).toContain('This approval is expired');
    expect((await decide(url, 'approve')).status).toBe(409);
  });

  it('has no content for a frame, a script or another site, on every answer', async () => {
    const url = await ask();
    for (const answer of [await open(url), await open(url, {}), await open(`${gateway.url}/approvals/0`)]) {
      const policy = answer.headers.get('content-security-policy');
      expect(policy).toContain(`frame-ancestors 'none'`);
      expect(policy).toContain(`default-src 'none'`);
      expect(policy).toContain(`form-action 'self'`);
      expect(answer.headers.get('x-frame-options')).toBe('DENY');
      expect(answer.headers.get('cache-control')).toBe('no-store');
      expect(answer.headers.get('content-type')).toBe('text/html; charset=utf-8');
    }
  });

  it('answers 401 without a valid credential, 403 for other people and foreign origins, and 404', async () => {
    const url = await ask();
    const anonymous = await open(url, {});
    expect([anonymous.status, anonymous.headers.get('www-authenticate')]).toEqual([
      401,
      'Basic realm="rialto", Bearer realm="rialto"',
    ]);
    expect((await open(url, basic('wrong'))).status).toBe(401);
    expect((await open(url, { authorization: `Bearer ${approver}` })).status).toBe(200);
    expect(await (await open(url)).text()).toContain('<form');
    const forCaller = await (await open(url, basic(bob))).text();
    expect(forCaller).toContain('Members of admin decide, but never the caller.');
    expect(forCaller).not.toContain('<form');
    const member = await gateway.tokenOf('default', 'mia');
    expect((await open(url, basic(member))).status).toBe(404);
    expect((await decide(url, 'approve', basic(member))).status).toBe(403);
    expect((await decide(url, 'approve', basic(bob))).status).toBe(403);
    const foreign: Record<string, string>[] = [
      { origin: 'https://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site', origin: gateway.url },
    ];
    for (const headers of foreign)
      expect([headers, (await decide(url, 'approve', headers)).status]).toEqual([headers, 403]);
    expect((await open(`${gateway.url}/approvals/01890000-0000-7000-8000-000000000000`)).status).toBe(404);
    const gina = await gateway.tokenOf('globex', 'gina', 'admin');
    expect((await decide(url, 'approve', basic(gina))).status).toBe(404);
    expect((await decide(url, 'perhaps')).status).toBe(400);
    expect((await fetch(url, { method: 'PUT', headers: basic(approver) })).status).toBe(405);
    await eventually(
      () => gateway.sql(`select state from approvals where id = $1`, [url.split('/').at(-1)]),
      ([{ state }]) => state === 'pending',
    );
  });

  it('answers 501 when the pages are off; the call then names the API', async () => {
    const url = await ask();
    const off = await startTestGateway({ RIALTO_APPROVAL_PAGES: 'false' }, gateway);
    const there = url.replace(gateway.url, off.url);
    expect((await open(there)).status).toBe(501);
    expect((await decide(there, 'approve')).status).toBe(501);
    const { error } = await off.rpc('tools/call', { name: 'up__echo', arguments: { text: 'off' } }, bob);
    expect(error.data.approvalUrl).toBe(`${off.url}/api/approvals/${error.data.approvalId}`);
    const byApi = await off.call('POST', `/api/approvals/${error.data.approvalId}`, { decision: 'approve' }, approver);
    expect(byApi.status).toBe(200);
    await off.close();
  });
});
