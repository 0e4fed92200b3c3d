import type { JsonObject } from '../../kernel/json.js';
import { SchemaChecks } from './schema-checks.js';
import { eventually } from '../../../test/support/gateway/eventually.js';

const properties = (count: number, inner: (index: number) => JsonObject): JsonObject => ({
  type: 'object',
  properties: Object.fromEntries(Array.from({ length: count }, (_, index) => [`p${index}`, inner(index)])),
});
const small = (title: string): JsonObject => ({ ...properties(3, () => ({ type: 'string' })), title });
describe('SchemaChecks', () => {
  let checks: SchemaChecks;
  beforeEach(() => void (checks = new SchemaChecks()));
  afterEach(() => checks.onApplicationShutdown());

  it('checks with a small schema, without a schema and with an invalid one', async () => {
    const schema = small('one');
    expect(await checks.violations('org', schema, { p1: 'x' })).toEqual([]);
    expect(await checks.violations('org', schema, { p1: 7 })).toEqual([
      { field: '/p1', description: 'must be string' },
    ]);
    expect(await checks.violations('org', undefined, { any: 1 })).toEqual([]);
    expect(await checks.violations('org', { type: 'string' }, {})).toEqual([
      { field: '', description: expect.stringMatching(/^the agent's input schema is refused: .*object/) },
    ]);
  });

  it('X2.4 checks a large or slow schema in a separate process, with the same result', async () => {
    let large = properties(900, () => ({ type: 'string' }));
    expect(checks.violations('org', large, { p1: 'x' })).toBeInstanceOf(Promise);
    // On a busy machine the process may not get enough processor time, and the check reports that; then it is
    // repeated with a copy of the schema.
    const found = await eventually(
      async () => checks.violations('org', (large = structuredClone(large)), { p1: 7 }),
      ([violation]) => violation?.description !== 'could not be checked in time',
    );
    expect(found).toEqual([{ field: '/p1', description: 'must be string' }]);
    expect(await checks.violations('org', large, { p1: 'x' })).toEqual([]);
    const cyclic = { ...properties(1, () => ({ $ref: '#' })), required: ['p1'] };
    expect(await checks.violations('org', cyclic, {})).toEqual([
      { field: '', description: expect.stringContaining('p1') },
    ]);
    const broken = { ...large, required: 7 };
    expect(await checks.violations('org', broken, {})).toEqual([
      { field: '', description: expect.stringContaining('schema is refused') },
    ]);
  });

  it('X2.4 also uses the other process when an org has used up its time on the event loop', async () => {
    let sentOutside = 0;
    for (let index = 0; index < 3_000 && sentOutside === 0; index++)
      if (checks.violations('spender', small(`many ${index}`), {}) instanceof Promise) sentOutside++;
    expect(sentOutside).toBe(1);
    expect(await checks.violations('saver', small('other'), {})).toEqual([]);
  });
});
