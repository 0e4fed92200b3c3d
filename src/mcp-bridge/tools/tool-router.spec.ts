import type { CallContext } from '../../kernel/call-context.js';
import type { CallOptions } from './tool-call.types.js';
import { ToolRouter } from './tool-router.js';

describe('a call of a tool', () => {
  /**
   * Returns after how many milliseconds the call continues as a task, for a client of an era with some capabilities.
   */
  async function goesOn(peer: object | undefined, options?: CallOptions) {
    const seen: (number | undefined)[] = [];
    const servers = { callTool: (_: unknown, __: unknown, afterMs?: number) => (seen.push(afterMs), { result: {} }) };
    const noTools = { has: () => false };
    const catalogues = { catalogueFor: () => ({ entries: [], byName: new Map() }) };
    const router = new ToolRouter(
      catalogues as never,
      noTools as never,
      noTools as never,
      {} as never,
      servers as never,
    );
    await router.callTool({ peer } as unknown as CallContext, { name: 'a__b', args: {} }, options);
    expect(seen).toHaveLength(1);
    return seen[0];
  }
  const modern = { era: 'modern', capabilities: {} };

  it('continues as a task early for a client that takes tasks, else within the minute of official SDKs', async () => {
    expect(await goesOn(modern, { takesTasks: true })).toBe(1_000);
    expect(await goesOn(modern, { only: 'a', takesTasks: true })).toBe(1_000);
    expect(await goesOn(modern)).toBe(50_000);
    expect(await goesOn({ era: 'legacy', capabilities: { elicitation: {} } })).toBe(50_000);
    expect(await goesOn(undefined)).toBe(50_000);
    expect(await goesOn(undefined, { isRest: true })).toBe(50_000);
  });

  it('never continues as a task for a client that cannot ask again or answer questions of a task', async () => {
    expect(await goesOn(modern, { only: 'a' })).toBeUndefined();
    expect(await goesOn({ era: 'modern', capabilities: { elicitation: {} } })).toBeUndefined();
  });
});
