import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';
import { closeAll, http } from '../../support/clients/outbound.js';
import { buildCard } from '../../support/stubs/stub-card.js';

interface List {
  readonly path: string;
  readonly key: string;
  /** Adds an item at any place in the list. */
  add(index: number): Promise<unknown>;
}

describe('lists of /api', () => {
  let gateway: TestGateway;
  let globex: string;
  let lists: Record<string, List>;

  beforeAll(async () => {
    gateway = await startTestGateway();
    globex = await gateway.tokenOf('globex', 'gina', 'admin');
    // One server acts as a hundred agents, one below each path.
    const agents = await http(
      (_request, response) => void response.end(JSON.stringify(buildCard({}, agents.url, '/'))),
    );
    const post = (path: string, body: object) => gateway.call('POST', path, body);
    const text = 'permit(principal == User::"x", action, resource);';
    const name = (index: number) => `n${(index * 37) % 100}-${index}`;
    lists = {
      agents: {
        path: '/api/a2a/agents',
        key: 'slug',
        add: (index) => post('/api/a2a/agents', { url: `${agents.url}/${index}`, slug: name(index).replace('-', '_') }),
      },
      published: {
        path: '/api/a2a/published',
        key: 'name',
        add: (index) =>
          post('/api/a2a/published', { name: name(index), description: 'x', executor: { kind: 'mailbox' } }),
      },
      policies: {
        path: '/api/policies',
        key: 'name',
        add: (index) => post('/api/policies', { name: name(index), text }),
      },
      keys: { path: '/api/keys', key: 'id', add: (index) => post('/api/keys', { name: name(index) }) },
      orgs: { path: '/api/orgs', key: 'slug', add: (index) => post('/api/orgs', { slug: name(index) }) },
      members: {
        path: '/api/orgs/globex/members',
        key: 'sub',
        add: (index) => post('/api/orgs/globex/members', { sub: name(index) }),
      },
      events: { path: '/api/audit/events', key: 'id', add: (index) => post('/api/keys', { name: `e${index}` }) },
    };
  });

  afterAll(async () => {
    await gateway.close();
    await closeAll();
  });

  const page = async (path: string, cursor: string | null, limit = 3, token?: string) =>
    gateway.call(
      'GET',
      `${path}?limit=${limit}${cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`}`,
      undefined,
      token,
    );

  const keysOf = async ({ path, key }: List): Promise<string[]> =>
    ((await page(path, null, 200)).body.items as Record<string, string>[]).map((item) => item[key]!);

  it.each(['agents', 'published', 'policies', 'keys', 'orgs', 'members', 'events'])(
    '%s: pages have no gap and no repeat while rows are added',
    async (name) => {
      const list = lists[name]!;
      for (let index = 0; index < 10; index++) await list.add(index);
      const before = await keysOf(list);
      expect(before.length).toBeGreaterThanOrEqual(10);
      const seen: string[] = [];
      let added = 50;
      for (let cursor: string | null = null; ;) {
        const { body } = await page(list.path, cursor);
        seen.push(...(body.items as Record<string, string>[]).map((item) => item[list.key]!));
        cursor = body.nextCursor as string | null;
        if (cursor === null || added > 120) break;
        await list.add(added++);
      }
      expect(new Set(seen).size).toBe(seen.length);
      expect(before.filter((key) => !seen.includes(key))).toEqual([]);
    },
  );

  it('abuse 42 43: a cursor of another list, of another org, or with any changed character is refused', async () => {
    for (const { path, add } of Object.values(lists)) {
      for (let index = 200; index < 205; index++) await add(index);
      const { nextCursor } = (await page(path, null)).body as { nextCursor: string };
      const bad = [
        `${nextCursor}x`,
        nextCursor.slice(1),
        nextCursor.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A')),
        nextCursor.split('.')[0]!,
        `.${nextCursor.split('.')[1]!}`,
        `${Buffer.from(`["' or true --"]`).toString('base64url')}.${nextCursor.split('.')[1]!}`,
        'x'.repeat(501),
      ];
      for (const cursor of bad) expect((await page(path, cursor)).status).toBe(400);
      for (const other of Object.values(lists))
        if (other.path !== path) expect((await page(other.path, nextCursor)).status).toBe(400);
      if (!path.includes('members')) expect((await page(path, nextCursor, 3, globex)).status).toBe(400);
      expect((await page(path, nextCursor)).status).toBe(200);
    }
  });

  it('abuse 42: filters are values, never patterns or statements', async () => {
    const count = async (q: string) =>
      (await gateway.call('GET', `/api/a2a/agents?limit=200&q=${encodeURIComponent(q)}`)).body.items?.length as number;
    expect(await count('n0_0')).toBe(1);
    for (const q of ['%', "' or '1'='1", '\\', 'n0%0', '.*', '";drop table orgs;--']) expect(await count(q)).toBe(0);
    for (const query of ['health=x', 'trustLevel=x', 'limit=0', 'limit=201', 'limit=1.5', 'unknown=1', 'q=', 'q=%00'])
      expect((await gateway.call('GET', `/api/a2a/agents?${query}`)).status).toBe(400);
  });
});
