import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the package: the nearest parent folder with a package.json. */
export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)));

/** The content of `/version` and of the log line at start. */
export const VERSION = {
  name: 'rialto',
  version: (JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }).version,
  ...commitOf(join(packageRoot, 'dist')),
  node: process.version,
  protocols: { a2a: ['1.0', '0.3'], mcp: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] },
} as const;

/** Reads the commit that the build wrote beside its output; empty when the build did not know it. */
export function commitOf(output: string): { readonly commit?: string } {
  const file = join(output, 'commit');
  const commit = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
  return /^[0-9a-f]{7,64}(?:-dirty)?$/.test(commit) ? { commit } : {};
}

/** The version with the commit, for people. */
export function versionText({ version, commit }: { version: string; commit?: string } = VERSION): string {
  return commit === undefined ? version : `${version} (${commit})`;
}

function findRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : findRoot(dirname(folder));
}
