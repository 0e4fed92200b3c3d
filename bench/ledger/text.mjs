import { readFileSync } from 'node:fs';

const words = readFileSync(new URL('words.txt', import.meta.url), 'utf8')
  .trim()
  .split(/\s+/);

/**
 * Returns a function that makes texts of ordinary English words: each text is another, and every run makes the same
 * ones. Its parameter is the length in characters.
 */
export function textMaker() {
  let state = 1;
  const next = () => (state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0);
  return (length) => {
    let text = '';
    while (text.length < length) text += `${words[next() % words.length]} `;
    return text.slice(0, length);
  };
}
