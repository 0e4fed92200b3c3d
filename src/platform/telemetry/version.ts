import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the package: the nearest folder above that holds its package.json. */
const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)));

/** What `/version` and the ready line say. */
export const VERSION = {
  name: 'rialto',
  version: (JSON.parse(readFileSync(join(packageRoot, 'package.json'), 'utf8')) as { version: string }).version,
  node: process.version,
  protocols: { a2a: ['1.0', '0.3'], mcp: ['2026-07-28', '2025-11-25', '2025-06-18', '2025-03-26', '2024-11-05'] },
} as const;

function findRoot(folder: string): string {
  return existsSync(join(folder, 'package.json')) ? folder : findRoot(dirname(folder));
}
