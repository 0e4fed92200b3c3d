import { checkedUnits, regressions } from '../bench/ledger/ledger.mjs';

const counts = (all: Record<string, number>) => Object.fromEntries(checkedUnits.map((unit) => [unit, all[unit] ?? 10]));
const commit = (name: string, paths: Record<string, Record<string, number>>) => ({
  commit: name,
  counts: Object.fromEntries(Object.entries(paths).map(([path, found]) => [path, counts(found)])),
});
const ledger = [
  commit('first', { send: { statements: 1, 'WAL bytes': 5_000 }, get: {} }),
  commit('second', { send: { statements: 2, 'WAL bytes': 4_000 } }),
];
const found = (all: Record<string, number>) => regressions({ send: counts(all) }, ledger);

describe('the ledger', () => {
  it('accepts counts that are as good as the best commit of each, within the tolerance', () => {
    expect(found({ statements: 1, 'WAL bytes': 4_000 })).toEqual([]);
    expect(found({ statements: 1.2, 'WAL bytes': 4_200 })).toEqual([]);
  });

  it('names each count that exceeds the best commit of its path, also when a later commit was worse', () => {
    expect(found({ statements: 2, 'WAL bytes': 4_500 })).toEqual([
      'send: 2 statements, 1 at first (at most 1.3)',
      'send: 4500 WAL bytes, 4000 at second (at most 4300)',
    ]);
  });

  it('checks no counts that depend on the speed of the machine', () => {
    expect(regressions({ '20 at once': counts({}) }, ledger)).toEqual([]);
  });

  it('refuses a path that no commit has recorded', () => {
    expect(regressions({ other: counts({}) }, ledger)).toEqual(
      checkedUnits.map((unit) => `other: no commit has recorded ${unit}`),
    );
  });
});
