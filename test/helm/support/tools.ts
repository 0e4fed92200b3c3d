import { execFile, spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { cacheFolder, helms, majors, modelsFolder, root, skipped, type Helm } from './global-setup.js';

export { helms, majors, modelsFolder, root, type Helm };

export const chart = join(root, 'helm/rialto');

/** Set to 1 to write golden files, the README's table and the generated part of the schema anew. */
export const updating = process.env.RIALTO_UPDATE_GOLDEN === '1';

export interface HelmRun {
  readonly ok: boolean;
  readonly out: string;
  readonly err: string;
}

const options = {
  encoding: 'utf8',
  maxBuffer: 64 * 1_048_576,
  env: {
    PATH: process.env.PATH,
    HELM_CACHE_HOME: join(cacheFolder, 'home/cache'),
    HELM_CONFIG_HOME: join(cacheFolder, 'home/config'),
    HELM_DATA_HOME: join(cacheFolder, 'home/data'),
  },
} as const;

/** Runs a Helm binary with no cluster and no user's configuration. */
export function helm(major: Helm, ...args: string[]): HelmRun {
  const run = spawnSync(join(cacheFolder, major), args, options);
  if (run.error) throw run.error;
  return { ok: run.status === 0, out: run.stdout, err: run.stderr };
}

/** The same, without holding the event loop, for many runs side by side. */
export async function helmAsync(major: Helm, ...args: string[]): Promise<HelmRun> {
  try {
    const { stdout, stderr } = await promisify(execFile)(join(cacheFolder, major), args, options);
    return { ok: true, out: stdout, err: stderr };
  } catch (error) {
    const { stdout = '', stderr = String(error) } = error as { stdout?: string; stderr?: string };
    return { ok: false, out: stdout, err: stderr };
  }
}

/** A describe block that needs Helm. */
export function withHelm(name: string, body: () => void): void {
  (skipped ? describe.skip : describe)(name, body);
}
