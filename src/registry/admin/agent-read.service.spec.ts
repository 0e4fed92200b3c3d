import type { AdminActs } from '../../platform/bus/admin-acts.js';
import type { Cursors } from '../../platform/http/cursor.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import type { AgentEntity } from '../agents/agent.entity.js';
import type { AgentStore } from '../agents/agent.store.js';
import { understand } from '../agents/agent-view.js';
import type { RegistryService } from '../registry.service.js';
import { AgentReadService } from './agent-read.service.js';

const card = {
  ...{ name: 'x', description: 'x', url: 'https://agent.example/', protocolVersion: '0.3.0', version: '1' },
  ...{ capabilities: {}, defaultInputModes: ['text/plain'], defaultOutputModes: ['text/plain'] },
};
const rowOf = (slug: string, skill: string, created: number) =>
  ({
    ...{ id: slug, orgId: 'o', slug, createdAt: new Date(created), updatedAt: new Date(created), skillsSince: {} },
    ...{ cardUrl: 'https://agent.example/card.json', credentialKind: null, quarantinedAt: null },
    card: JSON.stringify({ ...card, skills: [{ id: skill, name: skill, description: '', tags: [] }] }),
  }) as unknown as AgentEntity;

/** Reads agents of an org with these rows and without a fresh snapshot. `loads` counts the loaded snapshots. */
function readerOf(rows: readonly AgentEntity[]) {
  const count = { loads: 0 };
  const snapshot = () => {
    count.loads++;
    return Promise.resolve({ byId: new Map(atOnce(understand(rows)).map((agent) => [agent.row.id as string, agent])) });
  };
  const hasAny = (_org: string, slugs: readonly string[]) =>
    Promise.resolve(rows.some(({ slug }) => slugs.includes(slug)));
  const registry = { snapshot, peekSnapshot: () => undefined };
  const reader = new AgentReadService(
    {} as AdminActs,
    { hasAny } as unknown as AgentStore,
    registry as unknown as RegistryService,
    {} as Cursors,
  );
  return { reader, count };
}

it('shows a changed agent without reading the other agents of the org', async () => {
  const rows = [rowOf('a', 'x', 1), rowOf('b_c', 'd', 2)];
  const { reader, count } = readerOf(rows);
  expect((await reader.viewAgent(rows[1]!)).skills[0]).toMatchObject({ toolName: 'b_c.d', alias: 'a2a_b_c_d' });
  expect(count.loads).toBe(0);
});

it('shows the name that a tool has because an older agent has the shorter one', async () => {
  const rows = [rowOf('b', 'c_d', 1), rowOf('b_c', 'd', 2)];
  const { reader } = readerOf(rows);
  expect((await reader.viewAgent(rows[1]!)).skills[0]!.alias).toMatch(/^a2a_b_c_d_[0-9a-f]{8}$/);
  expect((await reader.viewAgent(rows[0]!)).skills[0]!.alias).toBe('a2a_b_c_d');
});
