import type { OrgId } from '../../../src/kernel/ids.js';
import { TxRunner } from '../../../src/platform/database/tx.js';
import { PolicyService } from '../../../src/policy/policy.service.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

const forbid = (name: string) => ({ name, text: `forbid(principal == User::"${name}", action, resource is Tool);` });

describe('concurrent administration', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
  });
  afterAll(() => gateway.close());

  const versionOf = async (slug: string) =>
    Number(
      (await gateway.sql<{ policy_version: string }>('select policy_version from orgs where slug = $1', [slug]))[0]!
        .policy_version,
    );

  it('no policy is stored in an org that is deleted at the same time', async () => {
    const [row] = await gateway.sql<{ id: OrgId }>(
      `insert into orgs (id, slug, name, deleted_at) values (gen_random_uuid(), 'gone', 'Gone', now()) returning id`,
    );
    const { get } = gateway.gateway;
    const store = () => get(TxRunner).run((tx) => get(PolicyService).seedDevelopment(tx, row!.id));
    await expect(store()).rejects.toMatchObject({ code: 'not_found' });
    expect(await gateway.sql('select from policies where org_id = $1', [row!.id])).toEqual([]);
  });

  it('a change of an org does not undo a change of its policies', async () => {
    const before = await versionOf('default');
    const names = Array.from({ length: 8 }, (_, index) => `p${index}`);
    const answers = await Promise.all(
      names.flatMap((name) => [
        gateway.call('POST', '/api/policies', forbid(name)),
        gateway.call('PATCH', '/api/orgs/default', { name: `Default ${name}` }),
      ]),
    );
    expect(answers.map(({ status }) => status).sort()).toEqual([...Array(8).fill(200), ...Array(8).fill(201)]);
    expect(await versionOf('default')).toBe(before + 8);
  });

  it('a deleted org stays deleted, and is deleted once', async () => {
    for (let round = 0; round < 6; round++) {
      const path = `/api/orgs/short-${round}`;
      await gateway.call('POST', '/api/orgs', { slug: `short-${round}` });
      const answers = await Promise.all([
        gateway.call('PATCH', path, { name: 'x' }),
        gateway.call('DELETE', path),
        gateway.call('PATCH', path, { name: 'y' }),
        gateway.call('DELETE', path),
      ]);
      expect(answers.map(({ status }) => status).filter((status) => status === 204)).toHaveLength(1);
      expect((await gateway.call('GET', path)).status).toBe(404);
    }
  });

  it('a removed policy stays removed when a version of it is stored meanwhile, and no request gets a 5xx', async () => {
    for (let round = 0; round < 6; round++) {
      const { body } = await gateway.call('POST', '/api/policies', forbid(`r${round}`));
      const path = `/api/policies/${body.id}`;
      const put = () => gateway.call('PUT', path, { text: forbid('other').text });
      const answers = await Promise.all([
        put(),
        gateway.call('DELETE', path),
        put(),
        gateway.call('DELETE', path),
        put(),
      ]);
      for (const { status } of answers) expect([200, 204, 404]).toContain(status);
      expect(answers.filter(({ status }) => status === 204)).toHaveLength(1);
      expect((await gateway.call('GET', path)).status).toBe(404);
    }
  });

  it('versions of a policy have no gap, with any number of concurrent writes', async () => {
    const { body } = await gateway.call('POST', '/api/policies', forbid('counted'));
    const stored = await Promise.all(
      Array.from({ length: 8 }, () =>
        gateway.call('PUT', `/api/policies/${body.id}`, { text: forbid('counted').text }),
      ),
    );
    expect(stored.map((answer) => answer.body.version).sort()).toEqual([2, 3, 4, 5, 6, 7, 8, 9]);
  });

  it('a viewer cannot test its own policy text', async () => {
    const viewer = await gateway.tokenOf('default', 'viewer', 'viewer');
    const question = { principal: 'User::"a"', action: 'a2a_invoke', resource: 'Skill::"a.b"' };
    expect((await gateway.call('POST', '/api/policies/test', question, viewer)).status).toBe(200);
    expect(
      (await gateway.call('POST', '/api/policies/test', { ...question, text: forbid('a').text }, viewer)).status,
    ).toBe(403);
  });
});
