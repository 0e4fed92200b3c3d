import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { ciFiles, find, parseObjects, template, type CiFile } from './support/render.js';
import { chart, helm, withHelm } from './support/tools.js';

/** Text that a person reads after an installation. */
function notes(file: CiFile, ...more: string[]): string {
  const run = helm(
    'helm4',
    'install',
    'rialto',
    chart,
    '--dry-run=client',
    '--namespace',
    'rialto-test',
    '--values',
    join(chart, 'ci', `${file}.yaml`),
    ...more,
  );
  if (!run.ok) throw new Error(run.err);
  return run.out.split('\nNOTES:\n')[1]!;
}

const commands = (text: string) => text.split('\n').filter((line) => /^ {2}(kubectl|helm) /.test(line));

withHelm('the notes after an install', () => {
  it.each(ciFiles.filter((file) => file !== 'ha'))('of ci/%s.yaml hold commands that a shell can read', (file) => {
    const found = commands(notes(file));
    expect(found.length).toBeGreaterThanOrEqual(4);
    for (const command of found) expect(spawnSync('sh', ['-n', '-c', command]).status).toBe(0);
  });

  it('name the suspended migration, by the name it has', () => {
    const manual = ['--set', 'migrations.mode=manual'];
    const [patch] = commands(notes('standard', ...manual));
    const [, name, body] = /patch job (\S+) --patch '(.*)'$/.exec(patch!)!;
    const job = find(parseObjects(template('helm4', 'standard', ...manual).out), 'Job', name!);
    expect(job.spec.suspend).toBe(true);
    expect(JSON.parse(body!)).toEqual({ spec: { suspend: false } });
  });

  it('(P11) make the first admin in an image without a shell', () => {
    const [made] = commands(notes('standard')).filter((command) => command.includes(' token '));
    expect(made).toMatch(
      / exec deployment\/\S+-api -- \/nodejs\/bin\/node dist\/src\/cli\.js token --org default .*--role admin --create/,
    );
  });

  it('show addresses without a doubled slash', () => {
    expect(notes('standard', '--set', 'config.publicUrl=https://rialto.example.com/')).toContain(
      ' https://rialto.example.com/mcp\n',
    );
  });
});
