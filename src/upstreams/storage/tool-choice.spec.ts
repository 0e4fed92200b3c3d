import { chooseIndex, type Load } from './tool-choice.js';
import { strategies } from '../upstream.types.js';

const loads = (...calls: (number | 'rests')[]): Load[] =>
  calls.map((count) => ({ isResting: count === 'rests', calls: count === 'rests' ? 0 : count }));

describe('AE-72 AE-73 choice between several servers with the same tool', () => {
  it.each([
    ['first', loads(9, 0), 5, 0],
    ['first', loads('rests', 4, 0), 0, 1],
    ['round-robin', loads(9, 0, 0), 0, 0],
    ['round-robin', loads(9, 0, 0), 4, 1],
    ['round-robin', loads(0, 'rests', 0), 3, 2],
    ['least-loaded', loads(2, 1, 3), 7, 1],
    ['least-loaded', loads('rests', 5, 6), 0, 1],
    ['least-loaded', loads(1, 0, 0), 0, 1],
    ['least-loaded', loads(1, 0, 0), 1, 2],
  ] as const)('%s of %j at turn %i chooses index %i', (strategy, given, turn, place) =>
    expect(chooseIndex(given, strategy, turn)).toBe(place),
  );

  it.each(strategies)('%s chooses a failed server when all have failed', (strategy) =>
    expect(chooseIndex(loads('rests', 'rests'), strategy, 0)).toBe(0),
  );
});
