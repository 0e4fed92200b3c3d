import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const dist = join(process.cwd(), 'dist');

/** A text that occurs once in a built file, and its replacement. */
export type Edit = readonly [find: string, put: string];

/**
 * Makes a copy of the build with one changed file, and returns the program to start. Throws when the text of an edit
 * does not occur exactly once, so that an edit without effect fails.
 * @param file path below `dist`, without extension.
 * @param preamble text before the first line of the file.
 */
export function changedBuild(folder: string, file: string, edits: readonly Edit[], preamble = ''): string {
  mkdirSync(folder, { recursive: true });
  for (const shared of ['node_modules', 'package.json']) symlinkSync(join(process.cwd(), shared), join(folder, shared));
  // Without the bundle, which contains the file unchanged.
  const isCode = (path: string): boolean => !/\.(d\.ts|map)$|\/dist\/bundle$/.test(path);
  cpSync(dist, join(folder, 'dist'), { recursive: true, filter: isCode });
  const target = join(folder, 'dist', `${file}.js`);
  let text = readFileSync(target, 'utf8');
  for (const [find, put] of edits) {
    const found = text.split(find).length - 1;
    if (found !== 1) throw new Error(`${file} contains this text ${found} times, expected once: ${find}`);
    text = text.replace(find, () => put);
  }
  writeFileSync(target, `${preamble}${text}`);
  return join(folder, 'dist', 'src', 'main.js');
}
