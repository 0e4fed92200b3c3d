import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

let gateway: TestGateway;
let one: TestUpstream;

beforeAll(async () => {
  gateway = await startTestGateway();
  one = await TestUpstream.start();
});
afterAll(async () => {
  await gateway.close();
  await one.close();
});

const changed = { description: 'Echoes, and sends it elsewhere.' };
const at = '/api/mcp/servers/own';
const give = (token: string) =>
  gateway.call('PUT', `${at}/credential`, { headers: { Authorization: 'Bearer x' } }, token);
const names = async (token: string) =>
  ((await gateway.rpc('tools/list', {}, token)).result.tools as { name: string }[])
    .map(({ name }) => name)
    .filter((name) => name.startsWith('own__'));
const call = (token: string, name = 'own__echo') =>
  gateway.rpc('tools/call', { name, arguments: { text: 'x' } }, token);
const codeOf = async (...wanted: Parameters<typeof call>) => (await call(...wanted)).error?.data.code;
const events = async (type: string) => (await gateway.call('GET', `/api/audit/events?type=${type}`)).body.items;
/** Changes a tool at the server, and adds one. */
const change = (): void => {
  const echo = one.tools.get('echo')!;
  one.tools.set('echo', { ...echo, tool: { ...echo.tool, ...changed } });
  one.add('new', () => ({ content: [] }));
};

it('holds a changed tool for the user who sees the change, until an admin approves it for that user', async () => {
  const [ann, bob] = [await gateway.tokenOf('default', 'ann'), await gateway.tokenOf('default', 'bob')];
  await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url, userCredentials: 'required' });
  await give(ann);
  await give(bob);
  await call(ann);
  await call(bob);
  change();
  await one.tellChanged();
  for (const token of [ann, bob])
    await eventually(
      () => names(token),
      (all) => all.join() === 'own__new',
    );
  const before = one.calls.length;
  expect((await call(ann)).error).toMatchObject({
    code: -32003,
    data: { code: 'tool_changed', hash: expect.any(String), approvedHash: expect.any(String) },
  });
  const waiting = await gateway.call('GET', '/api/mcp/tools?quarantined=true', undefined, ann);
  expect(waiting.body.items.map(({ name }: any) => name)).toEqual(['own__echo']);
  const audited = await events('mcp.tools-changed');
  expect(audited).toHaveLength(2);
  for (const event of audited) expect(event).toMatchObject({ server: 'own', caller: expect.any(String), count: 2 });

  await give(ann);
  expect(await names(ann)).toEqual(['own__new']);
  await gateway.call('DELETE', `${at}/credential`, undefined, ann);
  expect(await codeOf(ann)).toBe('credential_required');
  expect((await gateway.call('GET', `${at}/credentials`)).body.items).toHaveLength(1);
  expect((await gateway.call('DELETE', `${at}/credential`, undefined, ann)).status).toBe(404);
  await give(ann);
  expect(await codeOf(ann)).toBe('tool_changed');
  expect(one.calls).toHaveLength(before);
  expect(await events('mcp.tools-changed')).toHaveLength(audited.length);
  expect(await events('mcp.tools-approved')).toEqual([]);

  const { items } = (await gateway.call('GET', `${at}/credentials`)).body;
  expect(items.map(({ principal, quarantine }: any) => [principal.id, quarantine.length])).toEqual([
    ['ann', 1],
    ['bob', 1],
  ]);
  const place = `${at}/credentials/${items[0].id}`;
  const { quarantine } = (await gateway.call('GET', place)).body;
  expect(quarantine).toEqual([{ ...items[0].quarantine[0], tool: expect.objectContaining(changed) }]);
  const tools = [{ name: 'echo', hash: quarantine[0].hash as string }];
  for (const [method, path] of [
    ['GET', place],
    ['POST', `${place}/approve`],
  ] as const)
    expect((await gateway.call(method, path, undefined, ann)).status).toBe(403);
  const stale = [{ name: 'echo', hash: quarantine[0].approvedHash as string }];
  expect((await gateway.call('POST', `${place}/approve`, { tools: stale })).status).toBe(409);
  expect((await gateway.call('POST', `${at}/credentials/none/approve`)).status).toBe(404);
  expect(await codeOf(ann)).toBe('tool_changed');
  const approved = await gateway.call('POST', `${place}/approve`, { tools });
  expect([approved.status, approved.body.quarantine]).toEqual([200, []]);
  expect(await names(ann)).toEqual(['own__echo', 'own__new']);
  expect((await call(ann)).result.content[0].text).toBe('x');
  expect(await codeOf(bob)).toBe('tool_changed');
  expect(await events('mcp.tools-approved')).toMatchObject([{ server: 'own', caller: 'user:ann', count: 1, tools }]);
  await gateway.call('PATCH', at, { toolChanges: 'accept' });
  expect((await call(bob)).result.content[0].text).toBe('x');
});

it('holds waiting tools for users with their first credential, until the admin approves them', async () => {
  const carol = await gateway.tokenOf('default', 'carol');
  await gateway.call('DELETE', at);
  one.tools.clear();
  for (const name of ['echo', 'mine']) one.add(name, ({ text }) => ({ content: [{ type: 'text', text }] }));
  const more = { userCredentials: 'optional', toolChanges: 'hold-all' };
  await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url, ...more });
  change();
  await gateway.call('POST', `${at}/refresh`);
  expect(await codeOf(carol)).toBe('tool_changed');
  await give(carol);
  expect(await names(carol)).toEqual(['own__mine']);
  const before = one.calls.length;
  for (const name of ['own__echo', 'own__new']) expect(await codeOf(carol, name)).toBe('tool_changed');
  expect(one.calls).toHaveLength(before);
  expect(await codeOf(carol, 'own__mine')).toBeUndefined();
  await gateway.call('POST', `${at}/approve`);
  expect(await codeOf(carol)).toBeUndefined();
});
