import { join } from 'node:path';

const register = join(process.cwd(), 'scripts', 'register-typescript.mjs');

/**
 * What Node is given to run one of our entries; `file` is relative to src, such as `cli.ts`. What `scripts/test.mjs` has just
 * built is run as it is, in half the time; without it, the source.
 */
export function entryArgs(file: string): string[] {
  return process.env.RIALTO_TEST_BUILT === 'yes'
    ? [join(process.cwd(), 'dist', 'src', file.replace(/\.ts$/, '.js'))]
    : ['--import', register, join(process.cwd(), 'src', file)];
}
