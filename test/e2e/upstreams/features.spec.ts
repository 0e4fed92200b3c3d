import { eventually } from '../../support/gateway/eventually.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { connectLegacySdk, connectSdk } from '../../support/clients/mcp-clients.js';
import { library } from '../../support/gateway/library.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe('resources and prompts of MCP servers', () => {
  let gateway: TestGateway;
  const open: TestUpstream[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    const { body } = await gateway.call('GET', '/api/mcp/servers');
    for (const { id } of body.items) await gateway.call('DELETE', `/api/mcp/servers/${id}`);
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  const register = async (one: TestUpstream, id: string, more: object = {}) => {
    open.push(one);
    const { status } = await gateway.call('POST', '/api/mcp/servers', { id, url: one.url, ...more });
    expect(status).toBe(201);
    return one;
  };
  const rpc = (method: string, params: object = {}, token?: string | null, path?: string) =>
    gateway.rpc(method, params, token, path);
  const uris = async (path?: string): Promise<string[]> =>
    (await rpc('resources/list', {}, undefined, path)).result.resources.map(({ uri }: any) => uri);
  const read = (uri: string, more: object = {}, path?: string) =>
    rpc('resources/read', { uri, ...more }, undefined, path);
  const text = async (uri: string, more: object = {}, path?: string) =>
    (await read(uri, more, path)).result.contents[0].text;

  it.each(['sessions', 'modern'] as const)(
    'AE-06 AE-07 AE-25 AE-42 resources of a server with %s are listed and read unchanged',
    async (kind) => {
      await register(await library(kind, 'a://x', ['one', 'two.bin']), 'a');
      const { resources } = (await rpc('resources/list')).result;
      expect(resources[0]).toEqual({
        uri: 'a://x/one',
        name: 'one',
        mimeType: 'text/plain',
        annotations: {},
        _meta: { 'dev.rialto/server': 'a' },
      });
      const { resourceTemplates } = (await rpc('resources/templates/list')).result;
      expect(resourceTemplates).toMatchObject([
        { uriTemplate: 'a://x/by-id/{id}', _meta: { 'dev.rialto/server': 'a' } },
      ]);
      expect((await read('a://x/one')).result).toEqual({
        contents: [{ uri: 'a://x/one', text: 'a://x says a://x/one', _meta: { 'com.example/kept': 1 } }],
      });
      expect((await read('a://x/two.bin')).result.contents[0]).toMatchObject({ blob: 'AAEC' });
      expect(await text('a://x/by-id/7')).toBe('a://x says a://x/by-id/7');
    },
  );

  it('AE-29 AE-51 AE-52 a resource is read where it is listed, else by template or prefix, else anywhere', async () => {
    const plain = await TestUpstream.start();
    await register(plain, '0-plain');
    await register(await library('sessions', 'a://x', ['both', 'one']), 'a');
    await register(await library('modern', 'b://x', ['two']), 'b');
    const both = await library('sessions', 'c://x', []);
    both.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x/both', name: 'mine' }] }));
    await register(both, 'c');
    expect(await uris()).toEqual(['a://x/both', 'a://x/one', 'b://x/two']);
    expect(await text('b://x/two')).toContain('b://x says');
    expect(await text('b://x/by-id/1')).toContain('b://x says');
    expect(await text('b://x/unlisted')).toContain('b://x says');
    expect(await text('z://unheard-of')).toContain('a://x says');
    expect(await text('a://x/both')).toContain('a://x says');
    expect(await text('a://x/both', { _meta: { 'dev.rialto/server': 'c' } })).toContain('c://x says');
    expect(await uris('/mcp?servers=c')).toEqual(['a://x/both']);
    expect(await text('a://x/both', {}, '/mcp?servers=c')).toContain('c://x says');
    expect((await read('b://x/nowhere')).error).toMatchObject({ code: -32602, data: { uri: 'b://x/nowhere' } });
    expect((await read('b://x/two', {}, '/mcp?servers=0-plain')).error.code).toBe(-32602);
    for (const uri of [undefined, 7, '', 'x'.repeat(2_049)])
      expect((await rpc('resources/read', { uri })).error.code).toBe(-32602);
  });

  it('AE-22 only resources that the allow list names, directly or by a template, are listed and read', async () => {
    const allowed = ['a://x/one', 'a://x/by-id/{id}'];
    const one = await register(await library('sessions', 'a://x', ['one', 'two']), 'a', { resourceAllowList: allowed });
    expect(await uris()).toEqual(['a://x/one']);
    expect((await rpc('resources/templates/list')).result.resourceTemplates).toHaveLength(1);
    expect(await text('a://x/by-id/7')).toContain('by-id/7');
    for (const uri of ['a://x/two', 'a://x/by-id/7/8', 'a://x/one/'])
      expect((await read(uri)).error).toMatchObject({ code: -32602, data: { code: 'not_found' } });
    const completion = { ref: { type: 'ref/resource', uri: 'a://x/two' }, argument: { name: 'id', value: '' } };
    expect((await rpc('completion/complete', completion)).error.code).toBe(-32602);
    expect(one.calls.filter(({ name }) => name === 'resources/read')).toHaveLength(1);
  });

  it('AE-09 AE-10 AE-30 AE-53 prompts of all servers are listed by name, and filled in by their servers', async () => {
    await register(await library('sessions', 'a://x', []), 'a');
    await register(await library('modern', 'b://x', []), 'b');
    const { prompts } = (await rpc('prompts/list')).result;
    expect(prompts).toEqual(
      ['a', 'b'].map((id) => ({
        name: `${id}__greet`,
        arguments: [{ name: 'who', required: true }],
        _meta: { 'dev.rialto/server': id },
      })),
    );
    const got = await rpc('prompts/get', { name: 'b__greet', arguments: { who: 'Ada' } });
    expect(got.result).toEqual({
      description: 'greet',
      messages: [{ role: 'user', content: { type: 'text', text: 'hello Ada from b://x' } }],
    });
    for (const name of ['b__absent', 'absent', 'c__greet', undefined, 7, ''])
      expect((await rpc('prompts/get', { name })).error.code).toBe(-32602);
    expect((await rpc('prompts/get', { name: 'b__greet', arguments: [] })).error.code).toBe(-32602);
  });

  it('completes arguments of prompts and variables of templates', async () => {
    await register(await library('sessions', 'a://x', []), 'a');
    await register(await library('modern', 'b://x', []), 'b');
    const argument = { name: 'who', value: 'A' };
    const context = { arguments: { other: '1' } };
    const values = async (ref: object, path?: string) =>
      (await rpc('completion/complete', { ref, argument, context }, undefined, path)).result.completion.values;
    const expected = ['A', JSON.stringify(context)];
    expect(await values({ type: 'ref/prompt', name: 'b__greet' })).toEqual(['greet', ...expected]);
    const uri = 'b://x/by-id/{id}';
    expect(await values({ type: 'ref/resource', uri })).toEqual([uri, ...expected]);
    expect(await values({ type: 'ref/prompt', name: 'greet' }, '/mcp/servers/a')).toEqual(['greet', ...expected]);
    for (const ref of [undefined, {}, { type: 'ref/else' }, { type: 'ref/prompt' }, { type: 'ref/resource' }])
      expect((await rpc('completion/complete', { ref, argument })).error.code).toBe(-32602);
  });

  it('AE-41 AE-61 lists are answered from the cache, until the server notifies a change', async () => {
    const one = await register(await library('sessions', 'a://x', ['one']), 'a');
    const legacy = await connectLegacySdk(`${gateway.url}/mcp`, gateway.token);
    const notified: string[] = [];
    legacy.client.fallbackNotificationHandler = ({ method }) => Promise.resolve(void notified.push(method));
    await legacy.standing;
    await text('a://x/one');
    const lists = () => one.calls.filter(({ name }) => name.endsWith('/list')).length;
    // Its three lists are read at registration, and again when its connection has been open for a second.
    await eventually(lists, (count) => count >= 6);
    const before = lists();
    for (let count = 0; count < 5; count++) await uris();
    await rpc('prompts/list');
    expect(lists()).toBe(before);
    one.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x/new', name: 'new' }] }));
    one.methods.set('prompts/list', () => ({ prompts: [{ name: 'new' }] }));
    await one.tellChanged('resources');
    await eventually(uris, (all) => all.join() === 'a://x/new');
    expect((await rpc('prompts/list')).result.prompts).toMatchObject([{ name: 'a__new' }]);
    await eventually(
      () => notified,
      (all) => ['resources', 'prompts'].every((list) => all.includes(`notifications/${list}/list_changed`)),
    );
    await legacy.close();
  });

  it('decides reads and prompts by the item, and lists by the server', async () => {
    const one = await register(await library('sessions', 'a://x', ['one', 'two']), 'a');
    const denied = { code: -32003, data: { name: 'AuthorizationError' } };
    const texts = [
      'forbid(principal, action == Action::"mcp_read", resource == Resource::"a://x/two");',
      'forbid(principal, action == Action::"mcp_prompt", resource == Prompt::"a__greet");',
    ];
    const ids: string[] = [];
    for (const [index, policy] of texts.entries())
      ids.push((await gateway.call('POST', '/api/policies', { name: `no ${index}`, text: policy })).body.id);
    expect(await text('a://x/one')).toContain('says');
    expect((await read('a://x/two')).error).toMatchObject(denied);
    expect((await read('a://x/two', {}, '/mcp/servers/a')).error).toMatchObject(denied);
    expect((await rpc('prompts/get', { name: 'a__greet' })).error).toMatchObject(denied);
    const ref = { type: 'ref/prompt', name: 'a__greet' };
    expect((await rpc('completion/complete', { ref, argument: { name: 'x', value: '' } })).error).toMatchObject(denied);
    expect(one.calls.filter(({ name }) => !name.endsWith('/list')).map(({ name }) => name)).toEqual(['resources/read']);
    const hidden = 'forbid(principal, action == Action::"mcp_discover", resource == McpServer::"a");';
    ids.push((await gateway.call('POST', '/api/policies', { name: 'hidden', text: hidden })).body.id);
    expect(await uris()).toEqual([]);
    expect((await rpc('prompts/list')).result.prompts).toEqual([]);
    for (const id of ids) await gateway.call('DELETE', `/api/policies/${id}`);
    const events = (await gateway.call('GET', '/api/audit/decisions?limit=100')).body.items;
    expect(events.map(({ action }: any) => action)).toEqual(expect.arrayContaining(['mcp_read', 'mcp_prompt']));
  });

  it('returns stable pages, and refuses cursors of other lists', async () => {
    const names = Array.from({ length: 1_500 }, (_, index) => `f${String(index).padStart(4, '0')}`);
    await register(await library('sessions', 'a://x', names), 'a');
    const first = (await rpc('resources/list')).result;
    expect(first.resources).toHaveLength(1_000);
    const second = (await rpc('resources/list', { cursor: first.nextCursor })).result;
    expect([...first.resources, ...second.resources].map(({ name }: any) => name)).toEqual(names);
    expect(second.nextCursor).toBeUndefined();
    expect((await rpc('prompts/list', { cursor: first.nextCursor })).error.code).toBe(-32602);
    expect((await rpc('resources/list', { cursor: 7 })).error.code).toBe(-32602);
  });

  describe('one server with its own names', () => {
    it.each(['sessions', 'modern'] as const)(
      'shows and serves the items of a server with %s unchanged',
      async (kind) => {
        const one = await register(await library(kind, 'a://x', ['one']), 'a');
        one.add('shape', () => ({ content: [], structuredContent: { n: 1 } }), { description: 'As it is.' });
        await gateway.call('POST', '/api/mcp/servers/a/refresh');
        await register(await library('sessions', 'b://x', ['two']), 'b');
        const url = `${gateway.url}/mcp/servers/a`;
        for (const mode of ['auto', 'legacy', 'pinned'] as const) {
          const { client, close } = await connectSdk(url, gateway.token, mode);
          expect(client.getServerVersion()).toMatchObject({ name: 'upstream', version: '1.2.3' });
          expect(Object.keys(client.getServerCapabilities()!).sort()).toEqual([
            'completions',
            'prompts',
            'resources',
            'tools',
          ]);
          const { tools } = await client.listTools();
          expect(tools.map(({ name, description, _meta }) => [name, description, _meta])).toEqual([
            ['echo', undefined, undefined],
            ['shape', 'As it is.', undefined],
          ]);
          expect(await client.callTool({ name: 'shape', arguments: {} })).toMatchObject({
            structuredContent: { n: 1 },
          });
          expect((await client.listResources()).resources.map(({ uri }) => uri)).toEqual(['a://x/one']);
          expect((await client.listPrompts()).prompts).toMatchObject([{ name: 'greet' }]);
          const { messages } = await client.getPrompt({ name: 'greet', arguments: { who: 'you' } });
          expect(messages[0]).toMatchObject({ content: { text: 'hello you from a://x' } });
          expect((await client.readResource({ uri: 'a://x/one' })).contents[0]).toMatchObject({ uri: 'a://x/one' });
          await expect(client.callTool({ name: 'a__echo', arguments: {} })).rejects.toMatchObject({ code: -32602 });
          await close();
        }
      },
    );

    it('is not visible without permission, and reports items that its server does not know', async () => {
      open.push(await TestUpstream.start());
      await gateway.call('POST', '/api/mcp/servers', { id: 'bare', url: open[0]!.url });
      const post = (path: string, method: string) => rpc(method, {}, undefined, path);
      expect((await post('/mcp/servers/bare', 'tools/list')).result.tools).toHaveLength(1);
      for (const method of ['resources/list', 'prompts/get', 'completion/complete'])
        expect((await post('/mcp/servers/bare', method)).error.code).toBe(-32601);
      expect((await post('/mcp/servers/absent', 'tools/list')).error.data.code).toBe('not_found');
      const text = 'forbid(principal, action == Action::"mcp_discover", resource == McpServer::"bare");';
      const { body } = await gateway.call('POST', '/api/policies', { name: 'hidden', text });
      expect((await post('/mcp/servers/bare', 'tools/list')).error.data.code).toBe('not_found');
      await gateway.call('DELETE', `/api/policies/${body.id}`);
    });
  });
});
