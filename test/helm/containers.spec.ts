import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, parseDocument } from 'yaml';
import { readEnvironment } from '../../src/platform/config/env.schema.js';
import { root } from './support/tools.js';

const text = (name: string) => readFileSync(join(root, name), 'utf8');

interface Service {
  image: string;
  user?: string;
  command?: string[];
  environment: Record<string, string>;
  healthcheck?: { test: string[] };
  depends_on?: Record<string, { condition: string }>;
  ports?: string[];
  [key: string]: unknown;
}

const compose = parse(text('docker-compose.yml'), { merge: true }) as { services: Record<string, Service> };
const { services } = compose;
const apps = ['api', 'worker'] as const;

describe('docker-compose.yml', () => {
  it('has api, worker, a one-time migration, PostgreSQL and Redis', () => {
    expect(parseDocument(text('docker-compose.yml'), { merge: true }).errors).toEqual([]);
    expect(Object.keys(services)).toEqual(['api', 'worker', 'migrate', 'postgres', 'redis']);
    expect(apps.map((name) => services[name]!.environment.RIALTO_ROLE)).toEqual(['api', 'worker']);
  });

  it('checks the health of all that keep running', () => {
    for (const name of [...apps, 'postgres', 'redis'])
      expect(services[name]!.healthcheck!.test.length).toBeGreaterThan(1);
    for (const name of apps) {
      const { test } = services[name]!.healthcheck!;
      expect(test.slice(0, 3)).toEqual(['CMD', '/nodejs/bin/node', '-e']);
      expect(test[3]).toContain('http://127.0.0.1:3000/readyz');
    }
  });

  it('starts in order: databases healthy, schema migrated, then the app', () => {
    const ready = {
      migrate: { condition: 'service_completed_successfully' },
      postgres: { condition: 'service_healthy' },
      redis: { condition: 'service_healthy' },
    };
    for (const name of apps) {
      expect(services[name]!.depends_on).toEqual(ready);
      expect(services[name]!.command).toBeUndefined();
    }
    expect(services.migrate).toMatchObject({
      depends_on: { postgres: { condition: 'service_healthy' } },
      command: ['dist/src/cli.js', 'db', 'migrate'],
      restart: 'no',
    });
  });

  it('pins every image to a version and confines the app', () => {
    for (const { image } of Object.values(services))
      expect(image).toMatch(/^\$\{RIALTO_IMAGE:-rialto:\d+\.\d+\.\d+\}$|:\d+(\.\d+)+$/);
    for (const name of [...apps, 'migrate']) {
      expect(services[name]).toMatchObject({
        read_only: true,
        cap_drop: ['ALL'],
        security_opt: ['no-new-privileges:true'],
        tmpfs: ['/tmp'],
      });
    }
    expect(services.api!.ports).toEqual([expect.stringMatching(/^127\.0\.0\.1:/)]);
    for (const name of ['worker', 'migrate', 'postgres', 'redis']) expect(services[name]!.ports).toBeUndefined();
  });

  it('refuses to start without each secret, and names none', () => {
    const secrets = [
      'POSTGRES_PASSWORD',
      'REDIS_PASSWORD',
      'A2A_SECRET',
      'RIALTO_ENCRYPTION_KEY',
      'RIALTO_ADMIN_PASSWORD',
    ];
    for (const secret of secrets) {
      expect(text('docker-compose.yml')).toMatch(new RegExp(`\\$\\{${secret}:\\?[^}]+\\}`));
      expect(text('docker-compose.yml')).not.toMatch(new RegExp(`\\$\\{${secret}(:?-|\\})`));
      expect(text('.env.example')).toMatch(new RegExp(`^${secret}=$`, 'm'));
    }
  });

  it('gives the app only settings it knows, and they are accepted once .env is filled in', () => {
    const filled: Record<string, string> = {
      A2A_SECRET: 'q'.repeat(64),
      RIALTO_ENCRYPTION_KEY: Buffer.from('0123456789abcdef0123456789abcdef').toString('base64'),
    };
    const fill = (value: string) =>
      value.replaceAll(
        /\$\{(\w+)(?::[-?]([^}]*))?\}/g,
        (whole, name: string, fallback: string) => filled[name] ?? (whole.includes(':-') ? fallback : 'ab'.repeat(12)),
      );
    for (const name of [...apps, 'migrate']) {
      const env = Object.fromEntries(
        Object.entries(services[name]!.environment).map(([key, value]) => [key, fill(value)]),
      );
      expect(readEnvironment(env).problems).toEqual([]);
    }
  });
});
