import type { AgentEntity } from './agent.entity.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import { rivalSlugs, understand as understanding, type RegisteredAgent } from './agent-view.js';

let ids = 0;

function rowOf(slug: string, skills: readonly string[], created = ++ids): AgentEntity {
  const card = JSON.stringify({
    name: slug,
    description: 'x',
    url: 'https://agent.example/',
    protocolVersion: '0.3.0',
    version: '1',
    capabilities: {},
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: skills.map((id) => ({ id, name: id, description: '', tags: [] })),
  });
  const row = { id: slug, slug, card, cardUrl: 'https://agent.example/card.json', createdAt: new Date(created) };
  return { ...row, skillsSince: {} } as unknown as AgentEntity;
}

const understand = (...args: Parameters<typeof understanding>) => atOnce(understanding(...args));
const byId = (agents: readonly RegisteredAgent[]) => new Map(agents.map((agent) => [agent.row.id, agent]));
const aliases = (agents: readonly RegisteredAgent[]) => agents.map(({ tools }) => tools.map(({ alias }) => alias));

it('reads only the rows that changed, and no agent again when no name is shared', () => {
  const rows = [rowOf('a', ['x']), rowOf('b', ['x', 'y'])];
  const before = understand(rows);
  const after = understand([...rows, rowOf('c', ['x'])], byId(before));
  expect(after.slice(0, 2).every((agent, index) => agent === before[index])).toBe(true);
  expect(aliases(after)).toEqual([['a2a_a_x'], ['a2a_b_x', 'a2a_b_y'], ['a2a_c_x']]);
});

it('gives a shared name to the older agent, and back to the younger one when the older is removed', () => {
  const [older, younger] = [rowOf('a', ['b_c']), rowOf('a_b', ['c'])];
  const both = understand([older, younger]);
  expect(aliases(both)).toEqual([['a2a_a_b_c'], [expect.stringMatching(/^a2a_a_b_c_[0-9a-f]{8}$/)]]);
  expect(aliases(understand([younger], byId(both)))).toEqual([['a2a_a_b_c']]);
  expect(aliases(understand([older, younger], byId(understand([younger]))))).toEqual(aliases(both));
});

it('names the slugs of all agents that may share a name', () => {
  expect(rivalSlugs(understand([rowOf('a_b', ['c d', 'e'])])[0]!)).toEqual(['a', 'a_b_c']);
  expect(rivalSlugs(understand([rowOf('solo', ['e'])])[0]!)).toEqual([]);
});
