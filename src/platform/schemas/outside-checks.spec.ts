import type { JsonObject } from '../../kernel/json.js';
import { OutsideChecks } from './outside-checks.js';

const properties = (count: number, inner: (index: number) => JsonObject): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, inner(index)])),
});
/** A schema as in X2.4: within 64 KiB, but it takes seconds to compile. */
const hostile = (seed: number): JsonObject =>
  properties(700, (index) => ({ type: 'string', pattern: `^(a|b|c${seed}${index}){1,20}x$` }));
const honest = properties(20, () => ({ type: 'string' }));
const late = [{ field: '', description: 'could not be checked in time' }];

describe('OutsideChecks', () => {
  const open: OutsideChecks[] = [];
  const checksWith = (timeoutMs: number): OutsideChecks => {
    const one = new OutsideChecks(timeoutMs);
    open.push(one);
    return one;
  };
  afterEach(() => open.splice(0).forEach((one) => one.close()));

  it('X2.4 gives each org its turn, also when one org sends many checks', async () => {
    const checks = checksWith(600_000);
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

  it('X2.4 refuses a check that waits too long', async () => {
    const checks = checksWith(1);
    const first = checks.violations('org', { key: 1, schema: hostile(1), args: {} });
    expect(await checks.violations('org', { key: 2, schema: honest, args: {} })).toEqual(late);
    await first;
  });

  it('starts a new process when its process is lost', async () => {
    const checks = checksWith(600_000);
    const ask = () => checks.violations('org', { key: 1, schema: honest, args: { p1: 7 } });
    const broken = [{ field: '/p1', description: 'must be string' }];
    expect(await ask()).toEqual(broken);
    checks.close();
    expect(await ask()).toEqual(broken);
  });

  it('sends a schema once, and again when the process has dropped it', async () => {
    const checks = checksWith(600_000);
    const ask = (key: number) => checks.violations('org', { key, schema: honest, args: { p1: 7 } });
    const all = await Promise.all(Array.from({ length: 30 }, (_, key) => ask(key)));
    expect(all.every(([one]) => one!.field === '/p1')).toBe(true);
    expect(await ask(0)).toHaveLength(1);
  });
});
