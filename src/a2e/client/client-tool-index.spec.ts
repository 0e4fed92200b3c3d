import { A2EClientError } from './client-errors.js';
import type { ServerInfo } from './client-options.js';
import { requireStrategy, ToolIndex } from './client-tool-index.js';

const server = (server_id: string, ...names: string[]): ServerInfo =>
  ({ server_id, tools: names.map((name) => ({ name, tool_name: `${server_id}__${name}` })) }) as ServerInfo;

describe('ToolIndex', () => {
  let index: ToolIndex;
  beforeEach(() => {
    index = new ToolIndex();
    index.fill([server('a', 'echo', 'only'), server('b', 'echo'), server('c', 'echo')]);
  });
  const chosenPlace = (strategy: Parameters<ToolIndex['callAtServer']>[1], tool = 'echo') =>
    index.callAtServer(tool, strategy, ({ serverId, toolName }) => Promise.resolve(`${serverId} ${toolName}`));

  it('AE-74 finds all servers of a tool by its own name or its full name', () => {
    expect(['echo', 'only', 'b__echo', 'none'].map((name) => index.serversWith(name))).toEqual([
      ['a', 'b', 'c'],
      ['a'],
      ['b'],
      [],
    ]);
    index.fill([server('b', 'echo')]);
    expect(index.serversWith('echo')).toEqual(['b']);
  });

  it('AE-72 chooses the first server, the next one in turn, or the least loaded one', async () => {
    expect([await chosenPlace('first'), await chosenPlace('first')]).toEqual(['a a__echo', 'a a__echo']);
    const turns = [
      await chosenPlace('round-robin'),
      await chosenPlace('round-robin'),
      await chosenPlace('round-robin'),
    ];
    expect(turns.map((turn) => turn[0])).toEqual(['a', 'b', 'c']);
    let end = (): void => undefined;
    const busy = index.callAtServer('only', 'first', () => new Promise<void>((resolve) => (end = resolve)));
    expect(await chosenPlace('least-loaded')).toBe('b b__echo');
    end();
    await busy;
    expect(await chosenPlace('least-loaded')).toBe('a a__echo');
  });

  it('AE-73 AE-75 refuses an unknown tool and an unknown strategy by name', async () => {
    await expect(chosenPlace('first', 'none')).rejects.toMatchObject({
      code: 'mcp_tool_not_found',
      message: 'No server found for tool: none',
    });
    expect(() => requireStrategy('random')).toThrow(A2EClientError);
    expect(() => requireStrategy('random')).toThrow(
      'unknown strategy "random"; use one of first, round-robin, least-loaded',
    );
  });
});
