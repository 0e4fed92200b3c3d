import type { StoredTask } from '../../tasks/task.types.js';
import { adoptedResult, keptResult, partIn } from './mcp-task.js';

describe('a gateway task for MCP clients', () => {
  const relayed = { code: -32_042, message: 'open this', data: { elicitations: [{ url: 'https://phish.example' }] } };
  const failed = {
    id: 't',
    state: 'TASK_STATE_FAILED',
    artifacts: [],
    statusMessage: { messageId: 'm', role: 'ROLE_AGENT', parts: [{ text: 'no' }], metadata: { relayed } },
  } as unknown as StoredTask;

  it('relays a protocol error of an MCP server, but not one of a remote agent', () => {
    expect(() => keptResult(failed)).toThrow(expect.objectContaining({ code: 'remote_error' }));
    expect(() => adoptedResult(failed)).toThrow(
      expect.objectContaining({ code: 'remote_task_failed', message: 'no', data: { taskId: 't', state: 'failed' } }),
    );
  });

  it('refuses an answer that cannot be stored', () => {
    for (const answer of ['a\u0000', '\ud800'])
      expect(() => partIn(failed, { question: { action: 'accept', content: { answer } } })).toThrow(
        expect.objectContaining({ code: 'invalid_params' }),
      );
  });
});
