import type { TaskRun } from '../../tasks/executor.port.js';
import { LlmExecutor } from './llm.executor.js';
import { McpToolExecutor } from './mcp-tool.executor.js';

const never = undefined as never;

describe('a run of an executor that reads messages', () => {
  it.each([new McpToolExecutor(never, never, never), new LlmExecutor(never, never)])(
    'fails for a message that was encrypted for an earlier executor of its agent',
    async (executor) => {
      const encrypted_payload = Buffer.concat([Buffer.of(1), Buffer.alloc(79)]).toString('base64url');
      const run = { message: { parts: [{ data: { encrypted_payload } }] }, task: { history: [] } } as unknown;
      await expect(executor.execute(run as TaskRun).next()).rejects.toMatchObject({
        code: 'content_type_not_supported',
        message: 'this agent does not take encrypted messages',
      });
    },
  );
});
