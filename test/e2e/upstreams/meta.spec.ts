import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { modernRequest } from '../../support/clients/mcp-clients.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe("the metadata of a client's request to an MCP server", () => {
  let gateway: TestGateway;
  const open: TestUpstream[] = [];
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterEach(async () => {
    await gateway.call('DELETE', '/api/mcp/servers/own');
    await Promise.all(open.splice(0).map((one) => one.close()));
  });
  afterAll(() => gateway.close());

  it.each(['sessions', 'modern'] as const)(
    'AE-68 `_meta` of a request is forwarded to a server with %s, from clients of both eras, and is not recorded',
    async (kind) => {
      const one = await TestUpstream.start(kind);
      open.push(one);
      one.capabilities.resources = {};
      one.methods.set('resources/list', () => ({ resources: [{ uri: 'a://x', name: 'x' }] }));
      one.methods.set('resources/read', () => ({ contents: [{ uri: 'a://x', text: 'x' }] }));
      expect((await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url })).status).toBe(201);
      const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
      const forwarded = {
        traceparent,
        tracestate: 'a=1',
        baggage: 'b=2',
        'com.example/key': { deep: ['canary-meta'] },
      };
      const _meta = { ...forwarded, progressToken: 'the-clients-own', 'io.modelcontextprotocol/x': 1 };
      const params = { name: 'own__echo', arguments: { text: 'hé' }, _meta };
      expect((await gateway.rpc('tools/call', params)).result.content[0].text).toBe('hé');
      const { headers, body } = modernRequest('tools/call', { ...params, _meta: forwarded });
      expect((await gateway.call('POST', '/mcp', body, undefined, headers)).status).toBe(200);
      await gateway.rpc('resources/read', { uri: 'a://x', _meta });
      const { args: read } = one.calls.find(({ name }) => name === 'resources/read') as { args: any };
      const metas = [...one.metas, read._meta] as Record<string, unknown>[];
      expect(metas).toHaveLength(3);
      for (const meta of metas) {
        expect(meta).toMatchObject(forwarded);
        expect(meta).not.toHaveProperty(['io.modelcontextprotocol/x']);
        expect(meta.progressToken).not.toBe('the-clients-own');
      }
      expect(one.calls.filter(({ name }) => name === 'echo').map(({ args }) => args)).toEqual([
        { text: 'hé' },
        { text: 'hé' },
      ]);
      const { body: audit } = await gateway.call('GET', '/api/audit/events');
      expect(JSON.stringify(audit)).not.toContain('canary-meta');
    },
  );
});
