import type { Json } from '../../kernel/json.js';
import { atOnce } from '../../platform/jobs/in-turns.js';
import { catalogueOf, isListed, textsOf, type SkillEntry } from './tool-catalogue.js';

/** Returns the only tool of an agent with one skill that has this input schema. */
function entryOf(inputSchema: Json | undefined): SkillEntry {
  const agent = {
    row: { slug: 'a', name: 'A', health: 'healthy', quarantinedAt: null },
    card: { skills: [{ id: 's', name: 's', description: '', tags: [], inputSchema }], defaultInputModes: [] },
    tools: [{ skillId: 's', canonical: 'a.s', alias: 'a2a_a_s' }],
  };
  const [entry] = atOnce(catalogueOf({ agents: [agent] } as never, { servers: [] } as never)).entries;
  return entry as SkillEntry;
}

describe('the tool of a skill', () => {
  it.each<[string, Json]>([
    ['another type', { type: 'array' }],
    ['a remote reference', { type: 'object', properties: { a: { $ref: 'https://elsewhere.example/s.json' } } }],
    ['an unknown type', { type: 'object', properties: { a: { type: 'strin' } } }],
  ])('E20 is not listed when its schema refuses every call: %s', (_, schema) => {
    expect(isListed(entryOf(schema))).toBe(false);
  });

  it('C25 is listed with the corrected schema that its calls are checked against', () => {
    const entry = entryOf({ type: 'object', properties: [], required: null });
    const mended = { type: 'object', properties: {} };
    expect([isListed(entry), entry.inputSchema]).toEqual([true, mended]);
    expect(JSON.parse(textsOf(entry, 'canonical')[0]!)).toMatchObject({ name: 'a.s', inputSchema: mended });
  });

  it('K9 shows a message when there is no schema, and takes any object', () => {
    const entry = entryOf(undefined);
    expect(JSON.parse(textsOf(entry, 'canonical')[0]!).inputSchema.properties).toHaveProperty('message');
    expect(entry.inputSchema).toEqual({ type: 'object', additionalProperties: true });
  });
});
