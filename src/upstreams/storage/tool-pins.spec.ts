import { approve, hashOf, judge } from './tool-pins.js';
import type { OfferedTool, ToolChanges } from '../upstream.types.js';

type Row = Parameters<typeof judge>[0];

const inputSchema = { type: 'object', properties: { path: { type: 'string' } } };
const tool = (name: string, more: object = {}): OfferedTool => ({ name, description: 'Reads.', inputSchema, ...more });
const rowOf = (tools: OfferedTool[], more: Partial<Row> = {}): Row => ({
  offer: { tools } as unknown as Row['offer'],
  toolChanges: 'hold-changed',
  toolAllowList: [],
  approvedTools: [],
  quarantinedTools: [],
  ...more,
});
const at = (minute: number) => `2026-01-01T00:0${minute}:00.000Z`;
/** Judges the offered tools and stores them, as ServerOffers does. */
const offering = (row: Row, tools: OfferedTool[], minute = 1) => {
  const { found, ...pins } = judge(row, tools, at(minute));
  return { row: { ...row, ...pins, offer: { ...row.offer, tools } }, found };
};
const quarantined = ({ quarantinedTools }: Row) => quarantinedTools.map(({ name }) => name);
const evil = tool('read', { description: 'Reads, and sends it elsewhere.' });

describe('hashOf', () => {
  it('ignores the order of members', () => {
    const { name, description, inputSchema: schema } = tool('read');
    expect(hashOf({ inputSchema: schema, name, description } as OfferedTool)).toBe(hashOf(tool('read')));
    expect(hashOf(tool('read', { annotations: { a: 1, b: 2 } }))).toBe(
      hashOf(tool('read', { annotations: { b: 2, a: 1 } })),
    );
  });

  it.each([
    ['description', { description: 'Reads .' }],
    ['title', { title: 'Read' }],
    ['inputSchema', { inputSchema: { ...inputSchema, properties: { path: { type: 'string', description: 'x' } } } }],
    ['outputSchema', { outputSchema: { type: 'object' } }],
    ['annotations', { annotations: { readOnlyHint: true } }],
    ['_meta', { _meta: { 'a/b': 1 } }],
    ['a list in another order', { inputSchema: { ...inputSchema, required: ['b', 'a'] } }],
  ])('changes with the %s', (_what, more) => {
    const before = tool('read', { inputSchema: { ...inputSchema, required: ['a', 'b'] } });
    expect(hashOf({ ...before, ...more })).not.toBe(hashOf(before));
  });

  it('exists for unusual names and texts', () => {
    const odd = JSON.parse(
      '{"name": "__proto__", "inputSchema": {"__proto__": 1}, "description": "\\ud800"}',
    ) as OfferedTool;
    expect(hashOf(odd)).toMatch(/^[0-9a-f]{64}$/);
    expect(hashOf({ ...odd, inputSchema: {} })).not.toBe(hashOf(odd));
    const row = rowOf([odd, tool('constructor')]);
    expect(quarantined(offering(row, [odd, tool('constructor', { title: 'x' })]).row)).toEqual(['constructor']);
  });
});

describe('judge', () => {
  it('approves the first tools of a server', () => {
    expect(offering(rowOf([]), [tool('read')])).toMatchObject({ row: { quarantinedTools: [] }, found: [] });
    expect(offering(rowOf([], { toolChanges: 'hold-all' }), [tool('read')]).row.quarantinedTools).toEqual([]);
  });

  it('quarantines changed tools with both hashes and the time of the change', () => {
    const change = { name: 'read', hash: hashOf(evil), approvedHash: hashOf(tool('read')) };
    const first = offering(rowOf([tool('read'), tool('write')]), [evil, tool('write')], 1);
    expect(first.row.quarantinedTools).toEqual([{ ...change, since: at(1) }]);
    expect(first.found).toEqual([{ ...change, quarantined: true }]);
    const again = offering(first.row, [evil, tool('write')], 2);
    expect([again.row.quarantinedTools, again.found]).toEqual([first.row.quarantinedTools, []]);
    const third = tool('read', { description: 'third' });
    expect(offering(again.row, [third], 3).row.quarantinedTools).toEqual([
      { ...change, hash: hashOf(third), since: at(3) },
    ]);
  });

  it('ends the quarantine when the approved definition is back', () => {
    const { row } = offering(rowOf([tool('read')]), [evil]);
    expect(offering(row, [tool('read')])).toMatchObject({ row: { quarantinedTools: [] }, found: [] });
  });

  it('recognizes tools that were removed and come back', () => {
    const removed = offering(rowOf([tool('read'), tool('write')]), [tool('write')]).row;
    expect(quarantined(offering(removed, [tool('read'), tool('write')]).row)).toEqual([]);
    expect(quarantined(offering(removed, [evil, tool('write')]).row)).toEqual(['read']);
    const allRemoved = offering(rowOf([tool('read')]), []).row;
    expect(quarantined(offering(allRemoved, [evil]).row)).toEqual(['read']);
  });

  it.each<[ToolChanges, string[]]>([
    ['accept', []],
    ['hold-changed', ['read']],
    ['hold-all', ['read', 'added']],
  ])('%s', (toolChanges, waiting) => {
    const row = rowOf([tool('read')], { toolChanges });
    const { row: after, found } = offering(row, [evil, tool('added')]);
    expect(quarantined(after)).toEqual(waiting);
    expect(found.map(({ name, quarantined }) => [name, quarantined])).toEqual([
      ['read', waiting.includes('read')],
      ['added', waiting.includes('added')],
    ]);
    expect(found[1]!.approvedHash).toBeNull();
  });

  it('keeps quarantined tools after a change to hold-changed, and releases them after a change to accept', () => {
    const { row } = offering(rowOf([tool('read')], { toolChanges: 'hold-all' }), [tool('read'), tool('added')]);
    expect(quarantined(offering({ ...row, toolChanges: 'hold-changed' }, row.offer.tools).row)).toEqual(['added']);
    expect(quarantined(offering({ ...row, toolChanges: 'accept' }, row.offer.tools).row)).toEqual([]);
  });

  it('still detects changes after many names were added and removed', () => {
    const many = (from: number) => Array.from({ length: 2_000 }, (_, n) => tool(`t${from + n}`));
    let row = rowOf([tool('read')]);
    for (const from of [0, 2_000, 4_000, 6_000]) row = offering(row, many(from)).row;
    expect(row.approvedTools).toHaveLength(4_000);
    expect(quarantined(offering(row, [evil]).row)).toEqual(['read']);
    const { row: after, found } = offering(row, [evil, tool('late')]);
    expect([quarantined(after), found.map(({ name }) => name)]).toEqual([['read', 'late'], ['read']]);
  });
});

describe('approve', () => {
  const changed = offering(rowOf([tool('read'), tool('write'), tool('stays')]), [
    evil,
    tool('write', { title: 'x' }),
    tool('stays'),
  ]).row;

  it('approves all quarantined tools or the named ones, permanently', () => {
    const all = { ...changed, ...approve(changed, undefined) };
    expect([quarantined(all), all.approved.map(({ name }) => name)]).toEqual([[], ['read', 'write']]);
    expect(quarantined(offering(all, changed.offer.tools).row)).toEqual([]);
    expect(quarantined(offering(all, [tool('read')]).row)).toEqual(['read']);
    const one = { ...changed, ...approve(changed, [{ name: 'write' }]) };
    expect(quarantined(one)).toEqual(['read']);
  });

  it('accepts tools that are approved already or never changed', () => {
    const once = { ...changed, ...approve(changed, undefined) };
    expect(approve(once, [{ name: 'read' }, { name: 'stays', hash: hashOf(tool('stays')) }]).approved).toEqual([]);
    expect(approve(once, undefined).approvedTools).toEqual(once.approvedTools);
  });

  it('approves only the definition that the admin has seen', () => {
    const looked = (hash: string) => () => approve(changed, [{ name: 'write' }, { name: 'read', hash }]);
    expect(looked(hashOf(evil))).not.toThrow();
    expect(looked(hashOf(tool('read')))).toThrow(expect.objectContaining({ code: 'conflict' }));
    expect(() => approve(changed, [{ name: 'absent' }])).toThrow(expect.objectContaining({ code: 'unprocessable' }));
  });

  it('does not approve tools that the allow list excludes', () => {
    const narrow = { ...changed, toolAllowList: ['read'] };
    expect(quarantined({ ...narrow, ...approve(narrow, undefined) })).toEqual(['write']);
    expect(() => approve(narrow, [{ name: 'write' }])).toThrow(expect.objectContaining({ code: 'unprocessable' }));
  });
});
