import type { McpServerEntity } from './mcp-server.entity.js';
import { nothingYet } from './offer.js';
import { mayRead, serverOf } from './registered-server.js';

describe('mayRead: allow list of resources', () => {
  const allows = (resourceAllowList: string[], uri: string): boolean =>
    mayRead({ resourceAllowList } as McpServerEntity, uri);

  it.each([
    ['file:///srv/{+path}', 'file:///srv/a/b.txt', true],
    ['file:///srv/{+path}', 'file:///srv/a/..b/c...txt', true],
    ['file:///srv/{+path}', 'file:///srv/../etc/passwd', false],
    ['file:///srv/{+path}', 'file:///srv/a/..', false],
    ['file:///srv/{+path}', 'file:///srv/%2e%2E/etc/passwd', false],
    ['file:///srv/{+path}', 'file:///srv/..\\etc\\passwd', false],
    ['file:///srv/{name}', 'file:///srv/..%2F..%2Fetc%2Fpasswd', false],
    ['file:///srv/{name}', 'file:///srv/..%252Fetc', false],
    ['file:///srv/{name}', 'file:///srv/a%20b', true],
    ['file:///srv/../odd', 'file:///srv/../odd', true],
  ])('%s and %s: %s', (entry, uri, isAllowed) => {
    expect(allows([entry], uri)).toBe(isAllowed);
  });

  it('allows all URIs when it is empty', () => {
    expect(allows([], 'file:///srv/../etc/passwd')).toBe(true);
  });
});

describe('serverOf (C25)', () => {
  it('keeps the items that clients can read, and reports the others', () => {
    const offer = {
      ...nothingYet,
      tools: [
        { name: 'good', title: null, inputSchema: { type: 'object', properties: [] } },
        { name: 'bad', inputSchema: { type: 'array' } },
        { name: 'bare', inputSchema: { type: 'object' }, outputSchema: { type: 'object', $ref: '#/none' } },
      ],
      resources: [{ uri: 'a://1', mimeType: null }],
      templates: [{ uriTemplate: 'a://{x}', name: 'x', annotations: 'y' }],
      prompts: [{ name: 'p', arguments: null }],
      problems: [{ list: 'tools', name: 'bare', problem: 'outputSchema: it refers to "#/none"', effect: 'mended' }],
    };
    const row = {
      serverId: 's',
      toolAllowList: [],
      resourceAllowList: [],
      quarantinedTools: [],
      userCredentials: 'none',
    };
    const server = serverOf({ ...row, offer } as never);
    expect(server.tools.map(({ tool }) => tool)).toEqual([
      { name: 'good', inputSchema: { type: 'object', properties: {} } },
      { name: 'bare', inputSchema: { type: 'object' } },
    ]);
    expect(server.resources).toEqual([{ uri: 'a://1', name: 'a://1' }]);
    expect(server.templates).toEqual([{ uriTemplate: 'a://{x}', name: 'x' }]);
    expect(server.prompts.map(({ prompt }) => prompt)).toEqual([{ name: 'p' }]);
    expect(server.problems.map(({ list, name, effect }) => `${list} ${name} ${effect}`)).toEqual([
      'tools bare mended',
      'resources a://1 mended',
      'resourceTemplates a://{x} mended',
      'tools good mended',
      'tools bad left out',
      'prompts p mended',
    ]);
  });
});
