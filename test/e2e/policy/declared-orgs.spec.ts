import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { declarationLock } from '../../../src/policy/orgs/org.store.js';
import { eventually } from '../../support/gateway/eventually.js';
import { signToken, startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

describe('orgs of the configuration file', () => {
  const root = mkdtempSync(join(tmpdir(), 'rialto-declared-'));
  const file = join(root, 'rialto.config.json');
  let first: TestGateway;
  const write = (content: object) => writeFileSync(file, JSON.stringify(content));
  const start = (same?: TestGateway) => startTestGateway({ RIALTO_CONFIG_FILE: file }, same);
  const again = async (content: object): Promise<void> => {
    write(content);
    await (await start(first)).close();
  };
  const acme = {
    slug: 'acme',
    name: 'Acme',
    toolTimeoutMs: 5_000,
    trustTier: 2,
    members: [{ sub: 'ann', role: 'admin', groups: ['ops'] }, { sub: 'bob' }],
    policies: [{ name: 'no-bob', text: 'forbid(principal == User::"bob", action, resource);' }],
  };
  const ann = () => signToken({ sub: 'ann', org_domain: 'acme' });
  const seats = async () =>
    (await first.call('GET', '/api/orgs/acme/members', undefined, await ann())).body.items.map(
      ({ sub, role, groups, active }: any) => [sub, role, groups.join(), active],
    );

  beforeAll(async () => {
    write({ orgs: [acme, { slug: 'default', members: [{ sub: 'root', role: 'admin' }] }] });
    first = await start();
  });
  afterAll(async () => {
    await first.close();
    rmSync(root, { recursive: true, force: true });
  });

  it('exist with their members and policies before the first call', async () => {
    const org = await first.call('GET', '/api/orgs/acme', undefined, await ann());
    expect(org.body).toMatchObject({ slug: 'acme', name: 'Acme', toolTimeoutMs: 5_000, trustTier: 2 });
    expect(await seats()).toEqual([
      ['ann', 'admin', 'ops', true],
      ['bob', 'member', '', true],
    ]);
    const { items } = (await first.call('GET', '/api/policies', undefined, await ann())).body;
    expect(items.map(({ name, source }: any) => [name, source])).toContainEqual(['no-bob', 'config']);
    const root = await signToken({ sub: 'root' });
    expect((await first.call('GET', '/api/orgs', undefined, root)).body.items).toHaveLength(2);
  });

  it('change with the file; objects that it no longer names stay, except its declared policies', async () => {
    const before = await first.sql('select id, updated_at from orgs order by slug');
    await again({ orgs: [acme] });
    expect(await first.sql('select id, updated_at from orgs order by slug')).toEqual(before);
    await again({
      orgs: [{ ...acme, name: 'Acme Ltd', trustTier: 3, members: [{ sub: 'bob', active: false }], policies: [] }],
    });
    expect(await seats()).toEqual([
      ['ann', 'admin', 'ops', true],
      ['bob', 'member', '', false],
    ]);
    const { items } = (await first.call('GET', '/api/policies', undefined, await ann())).body;
    expect(items.map(({ name }: any) => name)).not.toContain('no-bob');
    await again({});
    const { body } = await first.call('GET', '/api/orgs/acme', undefined, await ann());
    expect(body).toMatchObject({ name: 'Acme Ltd', trustTier: 3 });
  });

  it('are created once by processes that start together', async () => {
    write({ orgs: [{ slug: 'globex', members: [{ sub: 'gina', role: 'admin' }] }] });
    const all = await Promise.all([start(first), start(first), start(first)]);
    await Promise.all(all.map((one) => one.close()));
    expect(await first.sql(`select slug from orgs where slug = 'globex'`)).toHaveLength(1);
  });

  it('are created even when the database connection breaks during the start', async () => {
    write({ orgs: [{ slug: 'hooli' }] });
    const holder = new pg.Client(first.database.url);
    await holder.connect();
    await holder.query('select pg_advisory_lock($1)', [declarationLock]);
    const waiting = () =>
      first.sql(
        `select pid from pg_locks l join pg_database d on d.oid = l.database
         where l.locktype = 'advisory' and not l.granted and d.datname = current_database()`,
      );
    const starting = start(first);
    const [{ pid }] = await eventually(waiting, ({ length }) => length === 1);
    await first.sql('select pg_terminate_backend($1)', [pid]);
    await eventually(waiting, ([now]) => now !== undefined && now.pid !== pid).finally(() => holder.end());
    await (await starting).close();
    expect(await first.sql(`select slug from orgs where slug = 'hooli'`)).toHaveLength(1);
  });

  it.each([
    [{ slug: 'system' }, /^rialto\.config\.json: orgs: system: slug is reserved/],
    [{ slug: 'x', members: [{ sub: 'a', role: 'boss' }] }, /^rialto\.config\.json: orgs: x\.members\.a: role /],
    [{ slug: 'x', trustTier: 9 }, /^rialto\.config\.json: orgs: x: trustTier /],
    [{ slug: 'default', policies: [] }, /declare the policies of the org "default" at the top level of the file/],
  ])('stop the start when they are wrong: %j', async (org, message) => {
    write({ orgs: [{ slug: 'fine' }, org] });
    await expect(start(first)).rejects.toThrow(message);
    expect(await first.sql(`select from orgs where slug in ('system', 'x')`)).toEqual([]);
  });
});
