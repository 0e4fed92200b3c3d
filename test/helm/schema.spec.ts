import { parse } from 'yaml';
import { chartFile, templateAsync } from './support/render.js';
import { majors, withHelm } from './support/tools.js';

type Schema = Record<string, unknown> & {
  type?: unknown;
  properties?: Record<string, Schema>;
  additionalProperties?: boolean | Schema;
  definitions?: Record<string, Schema>;
};

const schema = JSON.parse(chartFile('values.schema.json')) as Schema;

/** Every object schema, with the path to it. */
function objectSchemas(node: unknown, path = '#'): [string, Schema][] {
  if (typeof node !== 'object' || node === null) return [];
  if (Array.isArray(node)) return node.flatMap((item, index) => objectSchemas(item, `${path}/${index}`));
  const own = node as Schema;
  const isObject = own.type === 'object' || (typeof own.properties === 'object' && !path.endsWith('/properties'));
  const below = Object.entries(own).flatMap(([key, value]) => objectSchemas(value, `${path}/${key}`));
  return isObject ? [[path, own], ...below] : below;
}

/** The paths that refer to a definition. */
function references(node: unknown, definition: string, path = '#'): string[] {
  if (typeof node !== 'object' || node === null) return [];
  if ((node as Schema).$ref === `#/definitions/${definition}`) return [path];
  return Object.entries(node).flatMap(([key, value]) => references(value, definition, `${path}/${key}`));
}

describe('values.schema.json', () => {
  it('closes every object; only pieces of Kubernetes objects stay open', () => {
    const found = objectSchemas(schema);
    expect(found.length).toBeGreaterThan(50);
    const typed = found.filter(([, { additionalProperties: more }]) => typeof more === 'object' && 'type' in more);
    expect(typed.map(([path]) => path.split('/').at(-1))).toEqual(['mcpServers', 'env', 'headers', 'stringMap']);
    const maps = new Set(typed.slice(0, -1).map(([path]) => path));
    const open = found
      .filter(([path, { additionalProperties }]) => additionalProperties !== false && !maps.has(path))
      .map(([path]) => path);
    expect(open).toEqual(['#/definitions/stringMap', '#/definitions/kubernetesObject']);
    expect(schema.definitions!.stringMap!.additionalProperties).toEqual({ type: 'string' });
  });

  it('lets open objects stand only where Kubernetes or Helm defines the content', () => {
    expect(references(schema, 'kubernetesObject')).toEqual([
      '#/properties/global',
      '#/properties/podDefaults/properties/affinity/properties/nodeAffinity',
      '#/properties/podDefaults/properties/affinity/properties/podAffinity',
      '#/properties/podDefaults/properties/affinity/properties/podAntiAffinity',
      '#/properties/podDefaults/properties/extraVolumes/items',
      '#/properties/podDefaults/properties/extraInitContainers/items',
      '#/properties/podDefaults/properties/extraContainers/items',
      '#/properties/networkPolicy/properties/ingressFrom/items',
      '#/properties/networkPolicy/properties/metricsFrom/items',
      '#/properties/networkPolicy/properties/egress/properties/extra/items',
      '#/properties/extraObjects/items/oneOf/1',
      '#/definitions/egressRule/properties/to/items',
    ]);
  });

  it('knows exactly the keys of values.yaml', () => {
    const missing: string[] = [];
    const walk = (values: Record<string, unknown>, at: Schema, path: string) => {
      const resolved = resolve(at);
      const known = new Set(Object.keys(resolved.properties ?? {}));
      for (const [key, value] of Object.entries(values)) {
        if (!known.delete(key)) missing.push(`${path}${key} has no schema`);
        else if (isMap(value) && resolve(resolved.properties![key]!).properties)
          walk(value, resolved.properties![key]!, `${path}${key}.`);
      }
      for (const key of known) missing.push(`${path}${key} has no default`);
    };
    walk(parse(chartFile('values.yaml')) as Record<string, unknown>, schema, '');
    // Helm itself sets `global`; these have no default because their absence means something.
    const optional = ['global', 'bootstrap.apiKeyEnv', 'bootstrap.defaultAgent', 'bootstrap.$schema', ...ephemeral].map(
      (path) => `${path} has no default`,
    );
    expect(missing.filter((line) => !optional.includes(line))).toEqual([]);
  });
});

const ephemeral = ['migrations', 'api', 'worker'].flatMap((part) =>
  ['requests.ephemeral-storage', 'limits.ephemeral-storage', 'limits.cpu'].map((leaf) => `${part}.resources.${leaf}`),
);
const isMap = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length > 0;
const resolve = (node: Schema): Schema =>
  typeof node.$ref === 'string' ? schema.definitions![node.$ref.split('/').at(-1)!]! : node;

/** Twenty slips of real operators: a wrong letter, a wrong place, a wrong type, a wrong word. */
const slips = [
  'replicaCount=3',
  'api.replica=3',
  'api.resource.limits.memory=1Gi',
  'worker.autoscaling.minReplica=2',
  'image.repo=registry.example.com/x',
  'image.pullPolicy=Allways',
  'image.digest=sha256:abc',
  'secrets.existingsecret=rialto',
  'secrets.a2aSecret=hunter2',
  'secrets.keys.a2a=hunter2',
  'config.publicURL=https://rialto.example.com',
  'config.publicUrl=rialto.example.com',
  'config.maxBodyBytes=10mb',
  'config.logLevel=verbose',
  'queue.backend=rabbit',
  'migrations.mode=presync',
  'pdb.minAvailable=1',
  'pdb.maxUnavailable=0',
  'networkPolicy.egress.agent.cidr=0.0.0.0/0',
  'podDefaults.nodeselector.disk=ssd',
  'ingress.host=rialto.example.com',
  'profile=HA',
  'metrics.port=http',
  'securityContext.runAsUser=0',
];

withHelm('a mistyped value', () => {
  it.each(majors)('is refused by %s, never ignored', async (major) => {
    const runs = await Promise.all(slips.map((slip) => templateAsync(major, 'standard', '--set', slip)));
    expect(slips.length).toBeGreaterThanOrEqual(20);
    const accepted = slips.filter(
      (_, index) => runs[index]!.ok || !/values don't meet the specifications of the schema/.test(runs[index]!.err),
    );
    expect(accepted).toEqual([]);
  });

  it('is told from a correct one: the same command without a slip renders', async () => {
    expect((await templateAsync('helm4', 'standard', '--set', 'api.replicas=3')).ok).toBe(true);
  });
});
