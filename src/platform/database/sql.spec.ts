import { positional } from './sql.js';

describe('positional', () => {
  it('numbers the names of a statement in the order of their first use', () => {
    const statement = 'update t set a = :value, at = now() where id = :id::uuid and org = :org and b <> :value';
    const { text, values } = positional(statement, { id: 1, org: 2, value: 3 });
    expect(text).toBe('update t set a = $1, at = now() where id = $2::uuid and org = $3 and b <> $1');
    expect(values).toEqual([3, 1, 2]);
  });

  it('leaves casts, times and texts without parameters unchanged', () => {
    const statement = `select '10:30'::time, "a"::text[] from t`;
    expect(positional(statement, {})).toEqual({ text: statement, values: [] });
  });

  it.each([
    [{ id: 1 }, 'org'],
    [{ id: 1, org: 2, more: 3 }, 'more'],
  ])('refuses parameters that do not match the statement: %j', (params, name) => {
    expect(() => positional('select :id, :org', params)).toThrow(`The parameter "${name}" is missing or not used`);
  });

  it('passes undefined and null as values', () => {
    expect(positional('select :a, :b', { a: undefined, b: null }).values).toEqual([undefined, null]);
  });
});
