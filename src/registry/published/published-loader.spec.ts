import type { AgentId, OrgId } from '../../kernel/ids.js';
import type { Settings } from '../../platform/config/settings.js';
import type { OrgDirectory } from '../../policy/org-directory.js';
import type { RegistryService } from '../registry.service.js';
import type { ToolServers } from '../tool-servers.js';
import type { PublishedAgentEntity } from './published-agent.entity.js';
import type { PublishedAgentStore } from './published-agent.store.js';
import { definitionOf } from './published-definition.js';
import { PublishedLoader } from './published-loader.js';

const org = 'o' as OrgId;
const rowOf = (name: string, revision = 1) =>
  ({ ...definitionOf({ name }), id: name, orgId: org, revision, keys: [] }) as unknown as PublishedAgentEntity;

/** A loader over rows that the test changes, and the ids that it read. */
function loaderOf(rows: PublishedAgentEntity[]) {
  const read: AgentId[] = [];
  const store = {
    revisions: () => Promise.resolve(rows.map(({ id, revision }) => ({ id, revision }))),
    findByIds: (ids: readonly AgentId[]) => {
      read.push(...ids);
      return Promise.resolve(rows.filter(({ id }) => ids.includes(id)));
    },
  };
  const loader = new PublishedLoader(
    { RIALTO_A2A_ACCEPT_CLEARTEXT: true } as Settings,
    store as unknown as PublishedAgentStore,
    { byId: () => Promise.resolve({ id: org, slug: 'o' }) } as unknown as OrgDirectory,
    {} as ToolServers,
    {} as RegistryService,
  );
  return { loader, read };
}

it('reads only the agents that changed, and drops the ones that are gone', async () => {
  const rows = [rowOf('a'), rowOf('b'), rowOf('c')];
  const { loader, read } = loaderOf(rows);
  const first = await loader.load(org);
  expect(read.splice(0)).toEqual(['a', 'b', 'c']);
  rows.splice(0, 2, rowOf('b', 2));
  rows.push(rowOf('d'));
  const { agents } = await loader.load(org, first.rows);
  expect(read).toEqual(['b', 'd']);
  expect(agents.map(({ name, revision }) => [name, revision])).toEqual([
    ['b', 'b.2'],
    ['c', 'c.1'],
    ['d', 'd.1'],
  ]);
});

it('leaves out an agent that is archived between the two reads', async () => {
  const rows = [rowOf('a'), rowOf('b')];
  const { loader } = loaderOf(rows);
  const { rows: earlier } = await loader.load(org);
  rows[0] = rowOf('a', 2);
  const loading = loader.load(org, earlier);
  rows.shift();
  expect((await loading).agents.map(({ name }) => name)).toEqual(['b']);
});
