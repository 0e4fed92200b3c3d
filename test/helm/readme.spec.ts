import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { isMap, parseDocument, type Pair, type Scalar, type YAMLMap } from 'yaml';
import { chartFile } from './support/render.js';
import { chart, updating } from './support/tools.js';

/**
 * One row for each leaf of values.yaml. The comment on its line, or before it for a list of several
 * lines, describes it.
 */
function rows(map: YAMLMap, prefix = ''): string[] {
  return map.items.flatMap((item) => {
    const { key, value } = item as Pair<Scalar<string>, Scalar | YAMLMap>;
    const path = `${prefix}${key.value}`;
    if (isMap(value) && value.items.length > 0) return rows(value, `${path}.`);
    const about = value!.comment ?? (value as { commentBefore?: string }).commentBefore;
    if (!about) throw new Error(`values.yaml does not tell what ${path} is`);
    return [`| \`${path}\` | \`${JSON.stringify(value!.toJSON())}\` | ${escape(about.trim())} |`];
  });
}

const escape = (text: string) => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
const marked = /(<!-- values -->\n)[\s\S]*(\n<!-- \/values -->)/;

describe('helm/rialto/README.md', () => {
  const table = [
    '| value | default | what it is |',
    '| --- | --- | --- |',
    ...rows(parseDocument(chartFile('values.yaml')).contents as YAMLMap),
  ].join('\n');

  it('has the table of values.yaml; RIALTO_UPDATE_GOLDEN=1 writes it anew', () => {
    const file = join(chart, 'README.md');
    if (updating)
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace(marked, (_, open: string, close: string) => `${open}${table}${close}`),
      );
    expect(marked.exec(readFileSync(file, 'utf8'))![0]).toBe(`<!-- values -->\n${table}\n<!-- /values -->`);
  });

  it('(P13) makes the namespace before it is used, and shows real addresses', () => {
    const text = readFileSync(join(chart, 'README.md'), 'utf8');
    const [made, used] = ['kubectl create namespace rialto', '--namespace rialto'].map((words) => text.indexOf(words));
    expect(made).toBeGreaterThan(-1);
    expect(made).toBeLessThan(used!);
    expect(text).not.toContain('replace-me://');
    for (const [install] of text.matchAll(/helm install .*/g)) expect(install).toContain('--create-namespace');
  });

  it('values.yaml stays short enough to read', () => {
    expect(chartFile('values.yaml').split('\n').length).toBeLessThanOrEqual(350);
  });
});
