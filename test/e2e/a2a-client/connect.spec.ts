import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { snippetFor } from '../../../src/cli/connect.js';
import { startTestGateway, type TestGateway } from '../../support/gateway/gateway.js';

/** Runs the snippet that `rialto connect` prints. */
describe('a client that is connected by its snippet', () => {
  let gateway: TestGateway;
  beforeAll(async () => {
    gateway = await startTestGateway();
    const agent = { name: 'echo', description: 'Repeats the message.', a2a_enabled: true };
    await gateway.call('POST', '/api/a2a/published', { ...agent, executor: { kind: 'echo' } });
    await gateway.call('PATCH', '/api/orgs/default', { defaultAgent: 'echo' });
  });
  afterAll(() => gateway.close());

  it.each([true, false])('the A2A SDK sends a message (token in the snippet: %s)', async (isGiven) => {
    const { text } = snippetFor('a2a-sdk', `${gateway.url}/mcp`, isGiven ? gateway.token : undefined);
    const use = `
      const { SendMessageRequest } = await import('@a2a-js/sdk');
      const message = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'over the snippet' }] };
      console.log(JSON.stringify(await client.sendMessage(SendMessageRequest.fromJSON({ message }))));`;
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', `${text}\n${use}`], {
      env: { PATH: process.env.PATH, ...(!isGiven && { RIALTO_TOKEN: gateway.token }) },
    });
    expect(stdout).toContain('over the snippet');
    expect(stdout).toMatch(/COMPLETED|"state":\s*3/);
  });
});
