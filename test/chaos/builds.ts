import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const dist = join(process.cwd(), 'dist');

/** Text that occurs once in a file of the build, and what stands there instead. */
export type Edit = readonly [find: string, put: string];

/**
 * A copy of the build with one file changed; the program to start. Throws when an edit does not find its text exactly once, so
 * that a change that changes nothing fails loudly. @param file below `dist`, without its ending. @param preamble before its first line.
 */
export function changedBuild(folder: string, file: string, edits: readonly Edit[], preamble = ''): string {
  mkdirSync(folder, { recursive: true });
  for (const shared of ['node_modules', 'package.json']) symlinkSync(join(process.cwd(), shared), join(folder, shared));
  const isCode = (path: string): boolean => !/\.(d\.ts|map)$/.test(path);
  cpSync(dist, join(folder, 'dist'), { recursive: true, filter: isCode });
  const target = join(folder, 'dist', `${file}.js`);
  let text = readFileSync(target, 'utf8');
  for (const [find, put] of edits) {
    const found = text.split(find).length - 1;
    if (found !== 1) throw new Error(`${file} holds this ${found} times, it has to be once: ${find}`);
    text = text.replace(find, () => put);
  }
  writeFileSync(target, `${preamble}${text}`);
  return join(folder, 'dist', 'src', 'main.js');
}
