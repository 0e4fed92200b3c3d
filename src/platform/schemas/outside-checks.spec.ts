import type { JsonObject } from '../../kernel/json.js';
import { OutsideChecks } from './outside-checks.js';

const properties = (count: number, inner: (index: number) => JsonObject): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, inner(index)])),
});
/** As X2.4 has it: within 64 KiB, and seconds to compile. */
const hostile = (seed: number): JsonObject =>
  properties(700, (index) => ({ type: 'string', pattern: `^(a|b|c${seed}${index}){1,20}x$` }));
const honest = properties(20, () => ({ type: 'string' }));
const late = [{ field: '', description: 'could not be checked in time' }];

describe('OutsideChecks', () => {
  const open: OutsideChecks[] = [];
  const thread = (patienceMs: number): OutsideChecks => {
    const one = new OutsideChecks(patienceMs);
    open.push(one);
    return one;
  };
  afterEach(() => open.splice(0).forEach((one) => one.close()));

  it('X2.4 gives each org its turn, however many one of them asks for', async () => {
    const checks = thread(600_000);
    const order: string[] = [];
    const ask = async (org: string, key: number, schema: JsonObject) => {
      const answer = await checks.violations(org, { key, schema, args: { p1: 'x' } });
      order.push(org);
      return answer;
    };
    const crowd = Array.from({ length: 4 }, (_, index) => ask('crowd', index, hostile(index)));
    expect(await ask('other', 100, honest)).toEqual([]);
    expect(order.filter((org) => org === 'crowd').length).toBeLessThanOrEqual(2);
    expect(await Promise.all(crowd)).toHaveLength(4);
  });

  it('X2.4 refuses what waits too long', async () => {
    const checks = thread(1);
    const first = checks.violations('org', { key: 1, schema: hostile(1), args: {} });
    expect(await checks.violations('org', { key: 2, schema: honest, args: {} })).toEqual(late);
    await first;
  });

  it('begins anew when its process is lost', async () => {
    const checks = thread(600_000);
    const ask = () => checks.violations('org', { key: 1, schema: honest, args: { p1: 7 } });
    const broken = [{ field: '/p1', description: 'must be string' }];
    expect(await ask()).toEqual(broken);
    checks.close();
    expect(await ask()).toEqual(broken);
  });

  it('knows a schema again, and asks for it when the process has forgotten it', async () => {
    const checks = thread(600_000);
    const ask = (key: number) => checks.violations('org', { key, schema: honest, args: { p1: 7 } });
    const all = await Promise.all(Array.from({ length: 30 }, (_, key) => ask(key)));
    expect(all.every(([one]) => one!.field === '/p1')).toBe(true);
    expect(await ask(0)).toHaveLength(1);
  });
});
