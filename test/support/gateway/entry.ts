import { join } from 'node:path';

const register = join(process.cwd(), 'scripts', 'register-typescript.mjs');

/**
 * Returns the arguments of Node that run an entry file of the project. `file` is relative to src, such as `cli.ts`.
 * When `scripts/test.mjs` has built the project, Node runs the build, which takes half the time; else it runs the
 * source.
 */
export function entryArgs(file: string): string[] {
  return process.env.RIALTO_TEST_BUILT === 'yes'
    ? [join(process.cwd(), 'dist', 'src', file.replace(/\.ts$/, '.js'))]
    : ['--import', register, join(process.cwd(), 'src', file)];
}
