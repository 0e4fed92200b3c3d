import { relative } from 'node:path';
import { secondsOf } from './batches.mjs';
import { root } from './setup.mjs';

/** Starts the batches first and then the longest specs, so that no worker is alone at the end of a run. */
export default class LongestFirst {
  sort(tests) {
    return tests.toSorted((one, other) => weigh(other) - weigh(one));
  }

  cacheResults() {}
}

function weigh({ path }) {
  const name = relative(root, path);
  return name.startsWith('.cache') ? 1_000 : (secondsOf[name] ?? 0);
}
