import type { JsonObject } from '../../kernel/json.js';
import { RialtoError } from '../../kernel/errors.js';
import { completed, nothingYet, readOffers, requireShort, type AskPage } from './offer.js';

describe('readOffers', () => {
  const tool = (name: unknown, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more });
  const pagesOf = (pages: JsonObject[]) => {
    const cursors: unknown[] = [];
    const ask = (_: string, { cursor }: JsonObject): Promise<JsonObject> => {
      cursors.push(cursor);
      return Promise.resolve(pages[Math.min(cursors.length, pages.length) - 1]!);
    };
    return { tools: async () => (await readOffers(ask, { tools: {} })).tools, cursors };
  };
  const names = async (...pages: JsonObject[]) => (await pagesOf(pages).tools()).map(({ name }) => name);

  it('reads all pages in order', async () => {
    const { tools, cursors } = pagesOf([{ tools: [tool('b')], nextCursor: 'two' }, { tools: [tool('a')] }] as never);
    expect(await tools()).toEqual([tool('b'), tool('a')]);
    expect(cursors).toEqual([undefined, 'two']);
  });

  it('drops malformed tools and duplicate names', async () => {
    const list = [
      null,
      1,
      tool(''),
      tool(7),
      tool('x'.repeat(257)),
      { name: 'bare' },
      tool('a', { title: '1' }),
      tool('a'),
    ];
    expect(await names({ tools: [...list, tool('b', { inputSchema: 'no' })] } as never)).toEqual(['a']);
  });

  it('reports items that no client can read, and keeps the others (C25)', async () => {
    const deep = JSON.parse(`${'['.repeat(300)}${']'.repeat(300)}`) as never;
    const list = [
      tool('good'),
      tool('bad', { inputSchema: { type: 'object', properties: 'x' } }),
      tool('deep', { deep }),
      tool('odd', { outputSchema: { type: 'object', $ref: '#/none' } }),
      7,
    ];
    const { tools, problems } = await readOffers(() => Promise.resolve({ tools: list } as never), { tools: {} });
    expect(tools.map(({ name }) => name)).toEqual(['good', 'odd']);
    expect(problems).toEqual([
      {
        list: 'tools',
        name: 'bad',
        problem: 'inputSchema: properties is not an object of schemas',
        effect: 'left out',
      },
      { list: 'tools', name: 'deep', problem: 'it nests deeper than 256', effect: 'left out' },
      { list: 'tools', name: 'odd', problem: expect.stringMatching(/^outputSchema: it refers to/), effect: 'mended' },
      { list: 'tools', name: '', problem: 'it is not an object', effect: 'left out' },
    ]);
  });

  it.each<[string, (page: number) => string]>([
    ['the same cursor', () => '8'],
    ['an empty cursor', () => ''],
    ['two alternating cursors', (page) => String(page % 2)],
    ['endless new cursors', String],
  ])('stops at endless pages: %s (C30)', async (_, next) => {
    let pages = 0;
    const ask: AskPage = () => Promise.resolve({ tools: [tool('echo')], nextCursor: next(++pages) } as never);
    expect((await readOffers(ask, { tools: {} })).tools).toEqual([tool('echo')]);
    expect(pages).toBeLessThanOrEqual(4);
  });

  it('continues after an empty page and after an empty cursor (C30)', async () => {
    const pages = [{ tools: [tool('a')], nextCursor: '' }, { tools: [], nextCursor: '2' }, { tools: [tool('b')] }];
    expect(await names(...(pages as never[]))).toEqual(['a', 'b']);
  });

  it('refuses a result without a list, and a list that is too large', async () => {
    const refused = { code: 'remote_invalid_response' };
    await expect(names({})).rejects.toMatchObject(refused);
    const many = Array.from({ length: 2_001 }, (_, index) => tool(`t${index}`));
    await expect(names({ tools: many } as never)).rejects.toMatchObject(refused);
    const long = [tool('a', { description: 'x'.repeat(1_048_577) })];
    await expect(names({ tools: long } as never)).rejects.toMatchObject(refused);
  });

  it('reads resources, templates and prompts when the server has these capabilities', async () => {
    const lists: Record<string, JsonObject> = {
      'resources/list': { resources: [{ uri: 'a://1', name: '1' }, { uri: 1 }, { uri: 'a://1' }] },
      'resources/templates/list': { resourceTemplates: [{ uriTemplate: 'a://{x}' }, {}] },
      'prompts/list': { prompts: [{ name: 'p' }, { name: '' }] },
    };
    const sent: string[] = [];
    const ask = (method: string): Promise<JsonObject> => {
      sent.push(method);
      return Promise.resolve(lists[method]!);
    };
    expect(await readOffers(ask, { resources: {}, prompts: {} })).toEqual({
      tools: [],
      resources: [{ uri: 'a://1', name: '1' }],
      templates: [{ uriTemplate: 'a://{x}' }],
      prompts: [{ name: 'p' }],
      problems: [
        { list: 'resources', name: '', problem: 'uri is not a text of 1 to 2048 characters', effect: 'left out' },
        {
          list: 'resourceTemplates',
          name: '',
          problem: expect.stringMatching(/^uriTemplate is not/),
          effect: 'left out',
        },
        { list: 'prompts', name: '', problem: expect.stringMatching(/^name is not/), effect: 'left out' },
      ],
    });
    expect(sent).toEqual(Object.keys(lists));
  });

  it('keeps the known items of a refused list, but fails for refused tools', async () => {
    const all = { tools: [tool('a')], resources: [], resourceTemplates: [], prompts: [{ name: 'new' }] };
    const answerExcept =
      (...refused: string[]): AskPage =>
      (method) =>
        refused.includes(method)
          ? Promise.reject(new RialtoError('remote_error', { data: { relayed: { code: -32_603, message: 'broken' } } }))
          : Promise.resolve(all as unknown as JsonObject);
    const capabilities = { tools: {}, resources: {}, prompts: {} };
    const known = { ...nothingYet, resources: [{ uri: 'a://1' }], prompts: [{ name: 'old' }] };
    const found = {
      ...nothingYet,
      ...(await readOffers(answerExcept('resources/list', 'prompts/list'), capabilities)),
    };
    expect(completed(found, known)).toEqual({ ...known, tools: [tool('a')] });
    expect(JSON.stringify(completed({ ...found, ...(await readOffers(answerExcept(), capabilities)) }, known))).toBe(
      JSON.stringify({ ...nothingYet, tools: [tool('a')], prompts: [{ name: 'new' }] }),
    );
    await expect(readOffers(answerExcept('tools/list'), capabilities)).rejects.toMatchObject({ code: 'remote_error' });
  });

  it('reads no templates when the method is unknown, and only the first 2,000 resources', async () => {
    const relayed = { code: -32_601, message: 'no' };
    const resources = Array.from({ length: 2_001 }, (_, index) => ({ uri: `a://${index}` }));
    const ask = (method: string): Promise<JsonObject> =>
      method === 'resources/list'
        ? Promise.resolve({ resources })
        : Promise.reject(new RialtoError('remote_error', { data: { relayed } }));
    const offers = await readOffers(ask, { resources: {} });
    expect([offers.resources!.length, offers.templates]).toEqual([2_000, []]);
  });
});

describe('requireShort', () => {
  it('refuses a server that describes itself in more than 262,144 characters', () => {
    const text = 'x'.repeat(262_000);
    const server = { serverInfo: { name: 'a' }, capabilities: { tools: {} } };
    expect(() => requireShort({ ...server, instructions: text })).not.toThrow();
    for (const more of [
      { instructions: `${text}${text}` },
      { instructions: text, serverInfo: { title: text } },
      { capabilities: { experimental: { long: Array(100).fill(text.slice(0, 3_000)) } } },
    ])
      expect(() => requireShort({ ...server, ...more })).toThrow(
        'the MCP server cannot be used: serverInfo, capabilities and instructions have more than 262144 characters',
      );
  });
});
