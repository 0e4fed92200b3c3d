import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { ciFiles, objects, type KubernetesObject } from './support/render.js';
import { modelsFolder, root, withHelm } from './support/tools.js';

interface Model {
  new (data: object): { validate(): void };
}

/** Kinds that no Kubernetes release carries itself, with the fields that their CRD allows. */
const foreign: Record<string, string[]> = {
  HTTPRoute: ['parentRefs', 'hostnames', 'rules'],
  ServiceMonitor: ['selector', 'namespaceSelector', 'endpoints'],
  PrometheusRule: ['groups'],
};

const folderOf = ({ apiVersion }: KubernetesObject) =>
  apiVersion === 'v1' ? 'v1' : apiVersion.replace(/^(apps|batch|autoscaling|policy)\//, '$1/');
const builtIn = (object: KubernetesObject) => !(object.kind in foreign);

/**
 * Errors of the type checker for objects written as literals of the models' types: it finds unknown fields, which the
 * models' own validation does not, as well as missing ones and wrong types.
 */
function typeErrors(all: KubernetesObject[]): string {
  mkdirSync(modelsFolder, { recursive: true });
  const folder = mkdtempSync(join(modelsFolder, 'check-'));
  const lines = all.map((object, index) => {
    const type = `import('kubernetes-models/${folderOf(object)}').I${object.kind}`;
    return `export const _${index}: ${type} = ${JSON.stringify(object)};`;
  });
  writeFileSync(join(folder, 'check.ts'), lines.join('\n'));
  const compilerOptions = {
    noEmit: true,
    strict: true,
    skipLibCheck: true,
    target: 'es2022',
    module: 'esnext',
    moduleResolution: 'bundler',
    types: [],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['check.ts'] }));
  try {
    execFileSync(process.execPath, [join(root, 'node_modules/typescript/bin/tsc'), '--project', folder], {
      encoding: 'utf8',
    });
    return '';
  } catch (error) {
    return (error as { stdout: string }).stdout;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

withHelm('every rendered object', () => {
  const all = () => ciFiles.flatMap((file) => objects(file));
  const models = createRequire(join(modelsFolder, 'package.json'));

  it('has no field that its kind does not know, lacks none, and every type is right', () => {
    const rendered = all().filter(builtIn);
    expect(rendered.length).toBeGreaterThan(25);
    expect(typeErrors(rendered)).toBe('');
  });

  it('passes the validation of its kind', () => {
    for (const object of all().filter(builtIn)) {
      const kinds = models(`kubernetes-models/${folderOf(object)}`) as Record<string, Model>;
      expect(() => new kinds[object.kind]!(object).validate()).not.toThrow();
    }
  });

  it('of a kind from a CRD has only the fields of that CRD', () => {
    const rendered = all().filter((object) => !builtIn(object));
    expect(rendered.map(({ kind }) => kind).sort()).toEqual(Object.keys(foreign).sort());
    for (const { kind, spec } of rendered)
      expect(Object.keys(spec).filter((field) => !foreign[kind]!.includes(field))).toEqual([]);
  });

  it('has a name and a namespace of its own', () => {
    for (const file of ciFiles) {
      const names = objects(file).map(({ kind, metadata }) => `${kind}/${metadata.name}`);
      expect(new Set(names).size).toBe(names.length);
      for (const { kind, metadata } of objects(file)) {
        expect(metadata.name.length).toBeLessThanOrEqual(63);
        if (kind !== 'ConfigMap' || metadata.name.endsWith('-config')) expect(metadata.namespace).toBe('rialto-test');
      }
    }
  });

  it('keeps names within 63 characters when release and overrides are long', () => {
    const long = 'a-release-name-that-somebody-made-much-longer-than-needed';
    for (const { metadata } of objects('postgres-queue', '--set', `fullnameOverride=${long}`))
      expect(metadata.name.length).toBeLessThanOrEqual(63);
  });
});

withHelm('the check itself', () => {
  const broken = (change: (spec: Record<string, unknown>) => void) => {
    const service = objects('standard').find(({ kind }) => kind === 'Service')!;
    change(service.spec);
    return typeErrors([service]);
  };

  it('finds an unknown field, a wrong type and a missing field', () => {
    expect(broken((spec) => (spec.selectors = {}))).toContain('selectors');
    expect(broken((spec) => (spec.type = 7))).toContain('TS2322');
    expect(broken((spec) => (spec.ports = [{ name: 'http' }]))).toContain('port');
  });
});
