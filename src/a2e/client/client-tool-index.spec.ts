import { A2EClientError } from './client-errors.js';
import type { ServerInfo } from './client-options.js';
import { requireStrategy, ToolIndex } from './client-tool-index.js';

const server = (server_id: string, ...names: string[]): ServerInfo =>
  ({ server_id, tools: names.map((name) => ({ name, tool_name: `${server_id}__${name}` })) }) as ServerInfo;

describe('the tools that a client knows of', () => {
  let index: ToolIndex;
  beforeEach(() => {
    index = new ToolIndex();
    index.fill([server('a', 'echo', 'only'), server('b', 'echo'), server('c', 'echo')]);
  });
  const placed = (strategy: Parameters<ToolIndex['at']>[1], tool = 'echo') =>
    index.at(tool, strategy, ({ serverId, toolName }) => Promise.resolve(`${serverId} ${toolName}`));

  it('AE-74 a tool has all its servers, by its own name or the whole one', () => {
    expect(['echo', 'only', 'b__echo', 'none'].map((name) => index.serversWith(name))).toEqual([
      ['a', 'b', 'c'],
      ['a'],
      ['b'],
      [],
    ]);
    index.fill([server('b', 'echo')]);
    expect(index.serversWith('echo')).toEqual(['b']);
  });

  it('AE-72 the first is taken, the next in turn, or whoever has least to do', async () => {
    expect([await placed('first'), await placed('first')]).toEqual(['a a__echo', 'a a__echo']);
    const turns = [await placed('round-robin'), await placed('round-robin'), await placed('round-robin')];
    expect(turns.map((turn) => turn[0])).toEqual(['a', 'b', 'c']);
    let end = (): void => undefined;
    const busy = index.at('only', 'first', () => new Promise<void>((resolve) => (end = resolve)));
    expect(await placed('least-loaded')).toBe('b b__echo');
    end();
    await busy;
    expect(await placed('least-loaded')).toBe('a a__echo');
  });

  it('AE-73 AE-75 a tool that nobody has, and a strategy that there is none of, are refused by name', async () => {
    await expect(placed('first', 'none')).rejects.toMatchObject({
      code: 'mcp_tool_not_found',
      message: 'No server found for tool: none',
    });
    expect(() => requireStrategy('random')).toThrow(A2EClientError);
    expect(() => requireStrategy('random')).toThrow(
      'there is no strategy "random": it is first, round-robin, least-loaded',
    );
  });
});
