import { holdsInexactNumber } from './json-text.js';

describe('holdsInexactNumber', () => {
  it.each([
    '{"a":9007199254740993}',
    '[12345678901234567890]',
    '{"a":0.1000000000000000055511151231257827}',
    '[1e-400]',
  ])('finds one in %s', (text) => expect(holdsInexactNumber(text)).toBe(true));

  it.each([
    '{"a":9007199254740991,"b":-0,"c":1.50,"d":1E2,"e":0.30000000000000004,"f":1e21,"g":5e-324,"h":100000}',
    '{"a":"9007199254740993","b\\"9007199254740993":"\\\\"}',
    '[true,false,null]',
    '[]',
  ])('finds none in %s', (text) => expect(holdsInexactNumber(text)).toBe(false));
});
