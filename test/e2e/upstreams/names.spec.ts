import { poster } from '../../support/clients/a2e.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { TestUpstream } from '../../support/stubs/upstream.js';

describe('tools of MCP servers with names that MCP does not allow', () => {
  let gateway: TestGateway;
  let one: TestUpstream;
  const named = ['a/b', 'has space', 'n'.repeat(128)];
  beforeAll(async () => {
    gateway = await startTestGateway();
    one = await TestUpstream.start();
    const add = (name: string): void => one.add(name, () => ({ content: [{ type: 'text', text: name }] }));
    named.forEach(add);
    expect((await gateway.call('POST', '/api/mcp/servers', { id: 'own', url: one.url })).status).toBe(201);
  });
  afterAll(async () => {
    await gateway.close();
    await one.close();
  });

  it.each(named)(
    'can be called as `<serverId>__<tool>` too, and are recorded by the canonical name: %s',
    async (tool) => {
      const name = `own__${tool}`;
      const { body } = await gateway.call('GET', '/api/mcp/tools?server=own');
      const canonical = body.items.find(({ own }: any) => own === tool).name as string;
      expect(canonical).not.toBe(name);
      for (const each of [name, canonical]) {
        const content = [{ type: 'text', text: tool }];
        expect((await gateway.rpc('tools/call', { name: each })).result).toEqual({ content });
        const rest = await gateway.call('POST', '/api/mcp/tools/call', { name: each, arguments: {} });
        expect(rest.body).toMatchObject({ name: canonical, result: { content } });
        for (const server_id of [undefined, 'own']) {
          const reply = await poster(() => gateway).say('mcp/call_tool', { tool: each, server_id });
          expect(reply).toMatchObject({ tool: canonical });
        }
      }
      const { body: audit } = await gateway.call('GET', '/api/audit/events?limit=200');
      const verbs = audit.items.map(({ verb }: any) => verb as string);
      expect(verbs).toContain(canonical);
      expect(verbs).not.toContain(name);
    },
  );
});
