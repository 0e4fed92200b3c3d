// A file of Jest loads the whole product anew, in six seconds of processor time: more than most specs run. So they are dealt
// into a few files that run one after the other what each spec says, in one load.
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { root } from './setup.mjs';

/** Neighbours are often alike in length, so each goes to another file; files enough that the last one is not waited for alone. */
const count = 16;

/** Writes the files that the project `batches` runs, from the specs of a folder. */
export function dealBatches(folder) {
  const into = join(root, '.cache', 'batches');
  const specs = readdirSync(join(root, folder), { recursive: true })
    .filter((name) => name.endsWith('.spec.ts'))
    .sort();
  rmSync(into, { recursive: true, force: true });
  mkdirSync(into, { recursive: true });
  for (let batch = 0; batch < count; batch++) {
    const dealt = specs.filter((_, index) => index % count === batch).map((name) => join(root, folder, name));
    const lines = dealt.map((file) => {
      const path = JSON.stringify(relative(into, file));
      return `describe(${JSON.stringify(relative(root, file))}, () => void require(${path}));\n`;
    });
    writeFileSync(join(into, `${batch}.spec.js`), lines.join(''));
  }
}
