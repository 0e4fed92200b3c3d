import { handlerOf, inOrder } from './message-dispatcher.js';
import type { A2ePlugin } from './a2e-call.js';

const plugin = (name: string, priority: number, ...types: string[]): A2ePlugin => ({
  name,
  priority,
  handlers: new Map(types.map((type) => [type, { subject: 'message', answer: () => Promise.resolve({ name }) }])),
});

describe('the plugins of the dispatcher', () => {
  it('AE-69 the one with the highest priority that knows a type answers it; for others there is none', async () => {
    const plugins = inOrder([plugin('late', 1, 'a', 'b'), plugin('mcp', 10, 'a'), plugin('mid', 5, 'b')]);
    const answer = (type: string) => handlerOf(plugins, type)?.answer({} as never);
    expect([await answer('a'), await answer('b'), answer('c'), answer('constructor')]).toEqual([
      { name: 'mcp' },
      { name: 'mid' },
      undefined,
      undefined,
    ]);
  });
});
