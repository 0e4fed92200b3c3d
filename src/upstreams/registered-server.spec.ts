import type { McpServerEntity } from './mcp-server.entity.js';
import { mayRead } from './registered-server.js';

describe('what an allow list of resources lets through', () => {
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

  it('is everything where it is empty', () => {
    expect(allows([], 'file:///srv/../etc/passwd')).toBe(true);
  });
});
