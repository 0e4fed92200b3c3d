// The only description of the tree in the image. scripts/shipped.mjs builds and runs it;
// test/checkout/dockerfile.spec.ts compares the Dockerfile and .dockerignore with it.

/** Arguments of Node that build `dist`, in order: TypeScript 7 and its project, then the bundle. */
export const builds = [['node_modules/typescript-native/bin/tsc', '-p', 'tsconfig.build.json'], ['scripts/bundle.mjs']];

const manifests = ['package.json', 'package-lock.json'];
const quiet = ['--ignore-scripts', '--no-audit', '--no-fund'];

/** Arguments of npm that install the packages of the image. */
export const installProduction = ['ci', '--omit=dev', '--omit=optional', ...quiet];

/** The stages before the last one, step by step: files copied from the checkout, then a command. */
export const stages = {
  build: [
    { copy: manifests },
    { run: ['npm', 'ci', ...quiet] },
    { copy: ['tsconfig.json', 'tsconfig.build.json'] },
    { copy: ['src'] },
    { copy: ['migrations'] },
    { copy: ['scripts/bundle.mjs'], to: 'scripts/' },
    ...builds.map((args) => ({ run: ['node', ...args] })),
    { arg: 'COMMIT=' },
    { run: ['echo "$COMMIT" > dist/commit'] },
  ],
  deps: [{ copy: manifests }, { run: ['npm', ...installProduction] }],
  tools: [
    {
      run: [
        'mkdir tools && ldd /usr/bin/setpriv /usr/bin/prlimit /usr/bin/unshare |',
        "awk '/=> \\// { print $3 }' | sed 's#^/lib/#/usr/lib/#' | grep -v /libc.so | sort -u |",
        'xargs cp --parents -t tools /usr/bin/setpriv /usr/bin/prlimit /usr/bin/unshare',
      ],
    },
  ],
};

/**
 * The files that are added to the base image: tools of util-linux, and Node as a program that may be run but not read.
 */
export const system = ['--from=tools /app/tools/ /', '--from=base --chmod=0711 /nodejs/bin/node /nodejs/bin/node'];

/** Every entry of the tree with its stage; an entry without a stage comes from the checkout. */
export const entries = [
  { name: 'package.json' },
  { name: 'node_modules', stage: 'deps' },
  { name: 'dist', stage: 'build' },
];

/** The runtime settings of the tree. Root owns its files. */
export const runtime = {
  folder: '/app',
  env: { NODE_ENV: 'production', PORT: '3000', METRICS_PORT: '9464' },
  uid: 65532,
  gid: 65532,
  command: ['dist/src/main.js'],
};

const sources = new Set([
  ...Object.values(stages).flatMap((steps) => steps.flatMap(({ copy = [] }) => copy)),
  ...entries.filter(({ stage }) => !stage).map(({ name }) => name),
]);

/**
 * Tells whether a file of the checkout takes part in the build.
 * @param file path from the root, with `/`.
 */
export function isSource(file) {
  return (sources.has(file) || sources.has(file.split('/')[0])) && !file.endsWith('.spec.ts');
}
