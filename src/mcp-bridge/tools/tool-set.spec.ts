import type { CallContext } from '../../kernel/call-context.js';
import type { CallOptions } from './tool-call.types.js';
import { ToolSet } from './tool-set.js';

describe('a call of a tool', () => {
  /**
   * Returns after how many milliseconds the call continues as a task, for a client of an era with some capabilities.
   */
  async function goesOn(peer: object | undefined, options?: { only?: string; takesTasks?: boolean }) {
    const seen: CallOptions[] = [];
    const skills = { call: (_: unknown, __: unknown, how: CallOptions) => (seen.push(how), { result: {} }) };
    const noTools = { has: () => false };
    const set = new ToolSet(noTools as never, skills as never, noTools as never, {} as never);
    await set.call({ peer } as unknown as CallContext, { name: 'a__b', args: {} }, options);
    return seen[0]!.goesOnAfterMs;
  }
  const modern = { era: 'modern', capabilities: {} };

  it('continues as a task early for a client that takes tasks, else before the one-minute limit of the official SDKs', async () => {
    expect(await goesOn(modern, { takesTasks: true })).toBe(1_000);
    expect(await goesOn(modern, { only: 'a', takesTasks: true })).toBe(1_000);
    expect(await goesOn(modern)).toBe(50_000);
    expect(await goesOn({ era: 'legacy', capabilities: { elicitation: {} } })).toBe(50_000);
    expect(await goesOn(undefined)).toBe(50_000);
  });

  it('never continues as a task for a client that cannot ask again or answer questions of a task', async () => {
    expect(await goesOn(modern, { only: 'a' })).toBeUndefined();
    expect(await goesOn({ era: 'modern', capabilities: { elicitation: {} } })).toBeUndefined();
  });
});
