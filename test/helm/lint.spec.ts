import { join } from 'node:path';
import { ciFiles } from './support/render.js';
import { chart, helm, helms, majors, withHelm } from './support/tools.js';

withHelm('helm lint --strict', () => {
  for (const major of majors) {
    it(`runs the real ${helms[major].version}`, () => {
      expect(helm(major, 'version', '--short').out).toContain(helms[major].version);
    });

    it.each(ciFiles)(`passes with ${major} and ci/%s.yaml`, (file) => {
      const run = helm(major, 'lint', chart, '--strict', '--values', join(chart, 'ci', `${file}.yaml`));
      expect(run.out + run.err).not.toMatch(/\[(WARNING|ERROR)\]/);
      expect(run.ok).toBe(true);
    });
  }
});
