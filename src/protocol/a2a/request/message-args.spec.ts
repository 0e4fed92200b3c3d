import type { Json } from '../../../kernel/json.js';
import { messageArgs } from './message-args.js';

describe('messageArgs', () => {
  const of = (data: Json[], metadata?: Record<string, Json>) =>
    messageArgs({ parts: data.map((one) => ({ data: one })), ...(metadata && { metadata }) });

  it('has the members of all data, also beside text and in lists', () => {
    const parts = [{ text: 'x' }, { data: { a: 1 } }, { data: [{ b: 'two' }, 3, null, [{ c: 4 }]] }, { data: 'd' }];
    expect(messageArgs({ parts })).toEqual({ args: { a: 1, b: 'two' }, unclear: [] });
  });

  it('reports names with several values', () => {
    for (const data of [[{ a: 1 }, { a: 2 }], [[{ a: 1 }, { a: 2 }]], [{ a: 1 }, { a: [1] }]])
      expect(of(data).unclear).toEqual(['a']);
    expect(of([{ a: 1 }, { a: 1 }])).toEqual({ args: { a: 1 }, unclear: [] });
  });

  it('has the named skill, also when the data names another', () => {
    expect(of([{ a: 1 }], { skillId: 'deploy' })).toEqual({ args: { skillId: 'deploy', a: 1 }, unclear: [] });
    expect(of([{ skillId: 'harmless' }], { skillId: 'deploy' })).toEqual({
      args: { skillId: 'deploy' },
      unclear: ['skillId'],
    });
  });

  it('reports a skill that only the data name, because the work is that of another skill', () => {
    const named = { skillId: 'harmless' };
    const all: Json[][] = [[named], [{ a: 1 }, named], [[named]]];
    for (const data of all) expect(of(data).unclear).toEqual(['skillId']);
    expect(of([{ skillId: 'deploy' }], { skillId: 'deploy' }).unclear).toEqual([]);
  });

  it('leaves out the ciphertext, but no cleartext beside it', () => {
    expect(of([{ encrypted_payload: 'AQ', encryption_version: 'x', branch: 'main' }]).args).toEqual({ branch: 'main' });
    expect(of([{ encryption_version: 'x' }]).args).toEqual({ encryption_version: 'x' });
  });
});
