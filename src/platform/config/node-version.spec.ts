import { readFileSync } from 'node:fs';
import { nodeProblem } from './node-version.js';

const textOf = (file: string): string => readFileSync(file, 'utf8');
const manifest = JSON.parse(textOf('package.json')) as { engines: { node: string } };

describe('the supported versions of Node', () => {
  it.each(['v20.19.0', 'v20.20.2', 'v22.12.0', 'v22.23.3', 'v24.0.0', 'v24.21.0', 'v26.10.0'])(
    '%s is supported',
    (version) => expect(nodeProblem(version)).toBeUndefined(),
  );

  it.each(['v16.20.0', 'v18.20.8', 'v20.18.3', 'v21.7.3', 'v22.11.0'])('%s is too old to run on', (version) =>
    expect(nodeProblem(version)).toEqual({
      isFatal: true,
      line: `Rialto supports Node 20.19+, 22.12+, 24 and 26; this is ${version}. Install one of these.`,
    }),
  );

  it.each(['v23.11.0', 'v25.2.1', 'v27.0.0'])('%s is not tested, and one line says so', (version) =>
    expect(nodeProblem(version)).toEqual({
      isFatal: false,
      line: `Rialto supports Node 20.19+, 22.12+, 24 and 26; this is ${version}. It may work, but is not tested.`,
    }),
  );

  it('are the same in package.json, the README and the image', () => {
    const ranges = [...manifest.engines.node.matchAll(/\^(\d+)\.(\d+)\.0/g)];
    expect(ranges.map(([range]) => range).join(' || ')).toBe(manifest.engines.node);
    for (const [, major, minor] of ranges) {
      expect(nodeProblem(`v${major}.${minor}.0`)).toBeUndefined();
      if (minor !== '0') expect(nodeProblem(`v${major}.${Number(minor) - 1}.0`)).toBeDefined();
    }
    expect(ranges.map(([, major]) => major)).toEqual(['20', '22', '24', '26']);
    expect(textOf('README.md')).toContain('You need Node 24 or 26 (22.12+ and 20.19+ work too) and npm');
    expect(textOf('Dockerfile')).toMatch(/^ARG BUILD_IMAGE=node:24\.[\s\S]*^ARG RUNTIME_IMAGE=\S*nodejs24-/m);
  });
});
