// Everything is compiled to CommonJS, node_modules too: the ES modules of Nest and the CommonJS of Bull Board then load
// in one registry on every supported Node.
const compiled = {
  // One cache for all projects of a checkout: otherwise each project compiles every file again.
  id: import.meta.dirname.replaceAll(/\W/g, '-'),
  testEnvironment: '<rootDir>/test/support/jest-environment.mjs',
  moduleNameMapper: { '^(\\.{1,2}/.*)\\.js$': '$1' },
  // Its classes have static members named `name`, which cannot be assigned as the setting below compiles them.
  transformIgnorePatterns: ['/node_modules/a2a-js-sdk-0\\.3/'],
  // Those have a package.json of the same name as one of ours.
  modulePathIgnorePatterns: ['<rootDir>/.cache/shipped/', '<rootDir>/.cache/node-versions/'],
  transform: {
    '^.+\\.[cm]?[jt]s$': [
      '@swc/jest',
      {
        swcrc: false,
        jsc: {
          target: 'es2022',
          parser: { syntax: 'typescript', decorators: true },
          transform: { legacyDecorator: true, decoratorMetadata: true, useDefineForClassFields: false },
          keepClassNames: true,
        },
        module: { type: 'commonjs' },
      },
    ],
  },
  setupFiles: ['<rootDir>/src/v8-flags.ts', 'reflect-metadata'],
};
const withDatabase = {
  globalSetup: '<rootDir>/test/support/gateway/global-setup.ts',
  globalTeardown: '<rootDir>/test/support/gateway/global-teardown.ts',
};

export default {
  testSequencer: '<rootDir>/scripts/test-order.mjs',
  // No test needs that long; a machine with other work may.
  testTimeout: 240_000,
  // Prints the failures once more at the end.
  reporters: ['default', ['summary', { summaryThreshold: 0 }]],
  // For two cores: a fifth takes as long and more processor time. Each may run two gateways of up to 25 connections.
  maxWorkers: Number(process.env.RIALTO_TEST_WORKERS ?? 4),
  projects: [
    {
      ...compiled,
      displayName: 'unit',
      testMatch: ['<rootDir>/src/**/*.spec.ts', '<rootDir>/test/{,checkout/,clients/,chaos/}*.spec.ts'],
    },
    { ...compiled, displayName: 'medium', testMatch: ['<rootDir>/test/medium/**/*.spec.ts'], ...withDatabase },
    { ...compiled, displayName: 'e2e', testMatch: ['<rootDir>/test/e2e/**/*.spec.ts'], ...withDatabase },
    // The specs of unit and e2e, many to a file: written by scripts/batches.mjs.
    { ...compiled, displayName: 'unit-batches', testMatch: ['<rootDir>/.cache/batches/unit/*.spec.js'] },
    { ...compiled, displayName: 'e2e-batches', testMatch: ['<rootDir>/.cache/batches/e2e/*.spec.js'], ...withDatabase },
    // Against what scripts/shipped.mjs has started.
    { ...compiled, displayName: 'shipped', testMatch: ['<rootDir>/test/shipped/**/*.spec.ts'] },
    {
      ...compiled,
      displayName: 'helm',
      testMatch: ['<rootDir>/test/helm/**/*.spec.ts'],
      transformIgnorePatterns: ['/\\.cache/'],
      globalSetup: '<rootDir>/test/helm/support/global-setup.ts',
    },
  ],
};
