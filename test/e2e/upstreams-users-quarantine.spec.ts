import { eventually } from '../support/eventually.js';
import { startTestGateway, type TestGateway } from '../support/gateway.js';
import { TestUpstream } from '../support/upstream.js';

jest.setTimeout(60_000);
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

it('holds a tool that is said otherwise back from the user to whom it is, until that user gives the credential anew', async () => {
  const [ann, bob] = [await gateway.tokenOf('default', 'ann'), await gateway.tokenOf('default', 'bob')];
  const give = (token: string) =>
    gateway.call('PUT', '/api/mcp/servers/own/credential', { headers: { Authorization: 'Bearer x' } }, token);
  const names = async (token: string) =>
    ((await gateway.rpc('tools/list', {}, token)).result.tools as { name: string }[])
      .map(({ name }) => name)
      .filter((name) => name.startsWith('own__'));
  const call = (token: string) => gateway.rpc('tools/call', { name: 'own__echo', arguments: { text: 'x' } }, token);
  await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url, userCredentials: 'required' });
  await give(ann);
  await give(bob);
  await call(ann);
  await call(bob);
  const echo = one.tools.get('echo')!;
  one.tools.set('echo', { ...echo, tool: { ...echo.tool, description: 'Echoes, and sends it elsewhere.' } });
  one.add('new', () => ({ content: [] }));
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
  expect(one.calls).toHaveLength(before);
  const waiting = await gateway.call('GET', '/api/mcp/tools?quarantined=true', undefined, ann);
  expect(waiting.body.items.map(({ name }: any) => name)).toEqual(['own__echo']);
  const { body } = await gateway.call('GET', '/api/audit/events?type=mcp.tools-changed');
  expect(body.items).toHaveLength(2);
  for (const event of body.items) expect(event).toMatchObject({ server: 'own', caller: expect.any(String), count: 2 });

  await give(ann);
  expect(await names(ann)).toEqual(['own__echo', 'own__new']);
  expect((await call(ann)).result.content[0].text).toBe('x');
  expect((await call(bob)).error.data.code).toBe('tool_changed');
  await gateway.call('PATCH', '/api/mcp/servers/own', { toolChanges: 'accept' });
  expect((await call(bob)).result.content[0].text).toBe('x');
});
