import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseSync } from '@swc/core';
import { defects } from './defects/all.js';
import { exercised, preambleOf } from './defects/defect.js';
import { scenarios } from './scenarios/all.js';

describe('the planted defects', () => {
  it('are at least 25, each with a unique name and an existing scenario', () => {
    expect(defects.length).toBeGreaterThanOrEqual(25);
    expect(new Set(defects.map(({ name }) => name)).size).toBe(defects.length);
    const known = scenarios.map(({ name }) => name);
    expect(known).toEqual(expect.arrayContaining(defects.map(({ scenario }) => scenario)));
  });

  it('cover every scenario', () => {
    const used = new Set(defects.map(({ scenario }) => scenario));
    expect(scenarios.filter(({ name }) => !used.has(name))).toEqual([]);
  });

  it.each(defects.map((defect) => [defect.name, defect] as const))(
    '%s: its text occurs once in the source and in the build, and the changed file parses',
    (_, defect) => {
      const source = join(process.cwd(), 'src', `${defect.file}.ts`);
      const built = join(process.cwd(), 'dist', 'src', `${defect.file}.js`);
      for (const file of process.env.RIALTO_TEST_BUILT === 'yes' ? [source, built] : [source]) {
        expect(existsSync(file)).toBe(true);
        let text = readFileSync(file, 'utf8');
        for (const [find, put] of defect.edits) {
          expect(text.split(find)).toHaveLength(2);
          text = text.replace(find, () => put);
        }
        if (file === built) parseSync(text, { syntax: 'ecmascript', target: 'es2022' });
      }
      expect(defect.edits.some(([, put]) => put.includes('defect'))).toBe(true);
      expect(preambleOf(defect)).toContain(JSON.stringify(exercised(defect)).slice(1, -1));
    },
  );
});
