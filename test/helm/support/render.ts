import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { chart, helm, helmAsync, type Helm, type HelmRun } from './tools.js';

export const ciFiles = ['standard', 'ha', 'postgres-queue'] as const;
export type CiFile = (typeof ciFiles)[number];

export interface Container {
  name: string;
  image: string;
  args: string[];
  env: { name: string; value?: string; valueFrom?: { secretKeyRef?: { name: string; key: string } } }[];
  envFrom?: unknown[];
  [key: string]: unknown;
}

export interface PodSpec {
  containers: Container[];
  initContainers?: Container[];
  volumes: Record<string, unknown>[];
  [key: string]: unknown;
}

/** A rendered Kubernetes object, as far as the tests look into it. */
export interface KubernetesObject {
  apiVersion: string;
  kind: string;
  metadata: { name: string; namespace: string; labels: Record<string, string>; annotations?: Record<string, string> };
  spec: Record<string, unknown> & { template?: { metadata: KubernetesObject['metadata']; spec: PodSpec } };
  data?: Record<string, string>;
}

/** Fixed cluster facts, so that renders do not depend on the Helm version. */
const cluster = [
  '--namespace',
  'rialto-test',
  '--kube-version',
  '1.31.0',
  '--api-versions',
  'gateway.networking.k8s.io/v1',
  '--api-versions',
  'monitoring.coreos.com/v1',
];
const command = (file: CiFile, more: string[]) => [
  'template',
  'rialto',
  chart,
  ...cluster,
  '--values',
  join(chart, 'ci', `${file}.yaml`),
  ...more,
];

/** `helm template` of a ci file; more arguments may add values. */
export function template(major: Helm, file: CiFile, ...more: string[]): HelmRun {
  return helm(major, ...command(file, more));
}

export function templateAsync(major: Helm, file: CiFile, ...more: string[]): Promise<HelmRun> {
  return helmAsync(major, ...command(file, more));
}

/** The objects of a render, which must succeed. */
export function objects(file: CiFile, ...more: string[]): KubernetesObject[] {
  const run = template('helm4', file, ...more);
  if (!run.ok) throw new Error(run.err);
  return parseObjects(run.out);
}

export function parseObjects(text: string): KubernetesObject[] {
  return parseAllDocuments(text)
    .map((document) => {
      if (document.errors.length > 0) throw document.errors[0]!;
      return document.toJS() as KubernetesObject | null;
    })
    .filter((object) => object !== null);
}

/** The one object of a kind with a name, which must exist. */
export function find(all: KubernetesObject[], kind: string, name: string): KubernetesObject {
  const found = all.filter((object) => object.kind === kind && object.metadata.name === name);
  if (found.length !== 1) throw new Error(`${found.length} objects are ${kind} ${name}`);
  return found[0]!;
}

/** The pod of a workload or of a bare Pod; undefined for anything else. */
export function podOf(object: KubernetesObject): PodSpec | undefined {
  if (object.kind === 'Pod') return object.spec as unknown as PodSpec;
  return object.spec?.template?.spec;
}

export function containersOf(pod: PodSpec): Container[] {
  return [...(pod.initContainers ?? []), ...pod.containers];
}

export const chartFile = (name: string) => readFileSync(join(chart, name), 'utf8');
