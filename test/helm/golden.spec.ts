import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ciFiles, template } from './support/render.js';
import { updating, withHelm } from './support/tools.js';

withHelm('golden renders', () => {
  it.each(ciFiles)('ci/%s.yaml renders as recorded; RIALTO_UPDATE_GOLDEN=1 records anew', (file) => {
    const golden = join(__dirname, 'golden', `${file}.golden`);
    const { ok, out, err } = template('helm4', file);
    expect(err).toBe('');
    expect(ok).toBe(true);
    if (updating) writeFileSync(golden, out);
    expect(existsSync(golden)).toBe(true);
    expect(out).toBe(readFileSync(golden, 'utf8'));
  });

  it.each(ciFiles)('ci/%s.yaml renders twice to the same bytes: no chance, no clock', (file) => {
    expect(template('helm4', file).out).toBe(template('helm4', file).out);
  });

  it.each(ciFiles)('ci/%s.yaml renders to the same objects under both majors', (file) => {
    const bySource = (text: string) => text.split('---\n').sort();
    expect(bySource(template('helm3', file).out)).toEqual(bySource(template('helm4', file).out));
  });
});
