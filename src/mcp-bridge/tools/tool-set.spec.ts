import type { CallContext } from '../../kernel/call-context.js';
import type { CallOptions } from './tool-call.types.js';
import { ToolSet } from './tool-set.js';

describe('a call of a tool', () => {
  /** After how long it goes on as a task, for a client of an era with some capabilities. */
  async function goesOn(peer: object | undefined, options?: { only?: string; takesTasks?: boolean }) {
    const seen: CallOptions[] = [];
    const skills = { call: (_: unknown, __: unknown, how: CallOptions) => (seen.push(how), { result: {} }) };
    const nobody = { has: () => false };
    const set = new ToolSet(nobody as never, skills as never, nobody as never, {} as never);
    await set.call({ peer } as unknown as CallContext, { name: 'a__b', args: {} }, options);
    return seen[0]!.goesOnAfterMs;
  }
  const modern = { era: 'modern', capabilities: {} };

  it('goes on soon for who takes tasks, and for others before the official SDKs give up after a minute', async () => {
    expect(await goesOn(modern, { takesTasks: true })).toBe(1_000);
    expect(await goesOn(modern, { only: 'a', takesTasks: true })).toBe(1_000);
    expect(await goesOn(modern)).toBe(50_000);
    expect(await goesOn({ era: 'legacy', capabilities: { elicitation: {} } })).toBe(50_000);
    expect(await goesOn(undefined)).toBe(50_000);
  });

  it('never goes on for who could not ask again, nor answer the questions of a task', async () => {
    expect(await goesOn(modern, { only: 'a' })).toBeUndefined();
    expect(await goesOn({ era: 'modern', capabilities: { elicitation: {} } })).toBeUndefined();
  });
});
