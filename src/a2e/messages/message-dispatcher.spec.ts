import type { CallContext } from '../../kernel/call-context.js';
import type { Logger } from '../../platform/telemetry/logger.js';
import type { A2ePlugin } from './a2e-call.js';
import type { MessageAudit } from './message-audit.js';
import { handlerOf, inOrder, MessageDispatcher } from './message-dispatcher.js';

const plugin = (name: string, priority: number, ...types: string[]): A2ePlugin => ({
  name,
  priority,
  handlers: new Map(types.map((type) => [type, { subject: 'message', answer: () => Promise.resolve({ name }) }])),
});

describe('plugins of the dispatcher', () => {
  it('AE-69 chooses the plugin with the highest priority for a type, and none for an unknown type', async () => {
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

describe('(E15) answer without an open question', () => {
  const audit = { recordMessages: () => Promise.resolve() } as unknown as MessageAudit;
  const dispatcher = new MessageDispatcher(
    { handlers: new Map(), priority: 1, name: 'none' } as never,
    audit,
    {} as Logger,
  );
  const errorFor = async (message: object) =>
    (await dispatcher.answerMessage({} as CallContext, { id: 'a', version: '1.0', ...message })).error as {
      message: string;
    };

  it.each(['mcp/sampling/resp', 'mcp/sample/resp', 'mcp/roots/list/resp', 'mcp/root/list/resp'])('%s', async (type) => {
    const { message } = await errorFor({ type, req_id: 'q-1', ok: true });
    expect(message).toContain('no question waits for this answer: req_id "q-1"');
    expect(message).not.toContain('does not know messages');
  });

  it('has another error than an unknown type', async () => {
    expect((await errorFor({ type: 'mcp/made/up' })).message).toContain('does not know messages of type "mcp/made/up"');
  });
});
