import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { readCardKeys } from '../../src/platform/config/card-keys.js';
import { configFileSchema } from '../../src/platform/config/config-file.js';
import { environment, readEnvironment } from '../../src/platform/config/env.schema.js';
import { ciFiles, find, objects, podOf, type Container } from './support/render.js';
import { chart, root, updating, withHelm } from './support/tools.js';

/** Values that the referenced Secrets would hold. */
const secretValues: Record<string, string> = {
  DATABASE_URL: 'postgres://rialto:hunter2@db/rialto',
  RIALTO_DATABASE_DIRECT_URL: 'postgres://rialto:hunter2@db/rialto',
  REDIS_URL: 'redis://:hunter2@redis:6379/0',
  A2A_SECRET: 'Zm9ydHkgcmFuZG9tIGJ5dGVzIGluIGJhc2U2NCwgb3Igc28gaXQgc2VlbXM',
  RIALTO_ENCRYPTION_KEY: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64'),
  RIALTO_ADMIN_PASSWORD: 'correct horse battery',
  OPS_TOKEN: 'token',
};

const environmentOf = (container: Container) =>
  Object.fromEntries(container.env.map(({ name, value }) => [name, value ?? secretValues[name]])) as Record<
    string,
    string
  >;

withHelm('the environment of the pods', () => {
  it.each(ciFiles)('holds only settings that the app knows and accepts, with ci/%s.yaml', (file) => {
    const pods = objects(file).flatMap((object) => (object.kind === 'Deployment' ? [podOf(object)!] : []));
    for (const container of pods.flatMap((pod) => pod.containers)) {
      const env = environmentOf(container);
      expect(readEnvironment(env).problems).toEqual([]);
      expect(Object.keys(env).filter((name) => !(name in environment) && name !== 'OPS_TOKEN')).toEqual([]);
    }
  });

  it('carries the values: what is set in ha reaches the app', () => {
    const api = podOf(find(objects('ha'), 'Deployment', 'rialto-api'))!.containers[0]!;
    const { values } = readEnvironment(environmentOf(api));
    expect(values).toMatchObject({
      RIALTO_ROLE: 'api',
      GRPC_PORT: 50051,
      RIALTO_OUTBOUND_ALLOW: '10.20.0.0/16,agents.internal',
      RIALTO_JWKS: ['acme=https://id.example.com|https://id.example.com/jwks'],
      RIALTO_AUDIT_RETENTION_DAYS: 365,
      RIALTO_QUEUE_PREFIX: 'rialto-prod',
    });
  });

  it('takes the side-car that docs/mcp-servers.md shows, and calls it', () => {
    const docs = readFileSync(join(root, 'docs', 'mcp-servers.md'), 'utf8');
    const values = join(mkdtempSync(join(tmpdir(), 'rialto-values-')), 'values.yaml');
    writeFileSync(values, /```yaml\n(podDefaults:[\s\S]*?)```/.exec(docs)![1]!);
    const all = objects('standard', '--values', values);
    const { containers } = podOf(find(all, 'Deployment', 'rialto-api'))!;
    expect(containers.map(({ name }) => name)).toEqual(['api', 'archive']);
    expect(environmentOf(containers[0]!).RIALTO_OUTBOUND_ALLOW).toBe('127.0.0.1');
    expect(JSON.stringify(all)).toContain('http://127.0.0.1:8931/mcp');
  });

  it('large numbers stay whole numbers, in defaults and in values', () => {
    const all = objects('standard', '--set-json', 'config.rateLimit.org=10000000');
    const env = environmentOf(podOf(find(all, 'Deployment', 'rialto-api'))!.containers[0]!);
    expect(env).toMatchObject({ RIALTO_MAX_BODY_BYTES: '1048576', RIALTO_RATE_LIMIT_ORG: '10000000' });
  });

  it('keys for the signatures of cards reach the app as a JWKS', () => {
    const key = { kty: 'OKP', crv: 'Ed25519', x: 'abc', kid: 'desk', hosts: ['desk.example.com'] };
    const all = objects('standard', '--set-json', `config.cardKeys=${JSON.stringify([key])}`);
    const { RIALTO_CARD_KEYS: keys } = environmentOf(podOf(find(all, 'Deployment', 'rialto-api'))!.containers[0]!);
    const problems: string[] = [];
    expect([readCardKeys(keys, problems), problems]).toEqual([[key], []]);
  });

  it('the Redis setting is absent when queues live in PostgreSQL, and one pod then does both roles', () => {
    const api = podOf(find(objects('postgres-queue'), 'Deployment', 'rialto-api'))!.containers[0]!;
    expect(api.env.map(({ name }) => name)).not.toContain('REDIS_URL');
    expect(environmentOf(api).RIALTO_ROLE).toBe('all');
  });

  it('ports, role and mode are those that probes and metrics rely on', () => {
    const env = environmentOf(podOf(find(objects('standard'), 'Deployment', 'rialto-worker'))!.containers[0]!);
    expect(env).toMatchObject({ PORT: '3000', METRICS_PORT: '9464', RIALTO_ROLE: 'worker', NODE_ENV: 'production' });
  });
});

describe('bootstrap', () => {
  const file = join(chart, 'values.schema.json');
  const { $schema: _, ...generated } = z.toJSONSchema(configFileSchema, { target: 'draft-7', io: 'input' });

  it('has the schema of rialto.config.json; RIALTO_UPDATE_GOLDEN=1 writes it anew', () => {
    const schema = JSON.parse(readFileSync(file, 'utf8')) as { properties: Record<string, unknown> };
    if (updating)
      writeFileSync(
        file,
        `${JSON.stringify({ ...schema, properties: { ...schema.properties, bootstrap: generated } }, null, 2)}\n`,
      );
    const { properties } = JSON.parse(readFileSync(file, 'utf8')) as typeof schema;
    expect(properties.bootstrap).toEqual(JSON.parse(JSON.stringify(generated)));
  });
});

withHelm('bootstrap, rendered', () => {
  it('is a file that the app accepts', () => {
    const { data } = find(objects('ha'), 'ConfigMap', 'rialto-config');
    const parsed = configFileSchema.parse(JSON.parse(data!['rialto.config.json']!));
    expect(parsed.agents[0]).toMatchObject({
      slug: 'vercel_ops',
      credential: { type: 'bearer', tokenEnv: 'OPS_TOKEN' },
    });
    expect(parsed.policies[0]!.text).toContain('resource == Skill::"vercel_ops.deploy"');
  });

  it('restarts the pods when it changes', () => {
    const checksum = (...more: string[]) =>
      find(objects('ha', ...more), 'Deployment', 'rialto-api').spec.template!.metadata.annotations!['checksum/config'];
    expect(checksum()).toMatch(/^[a-f0-9]{64}$/);
    expect(checksum('--set', 'bootstrap.agents[0].timeoutMs=1,bootstrap.agents[0].url=https://x.example.com')).not.toBe(
      checksum(),
    );
  });
});
