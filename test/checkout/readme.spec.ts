import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { environment } from '../../src/platform/config/env.schema.js';
import { createProgram } from '../../src/cli/program.js';
import { clients } from '../../src/cli/connect.js';

const root = join(__dirname, '..', '..');
const page = (name: string) => join(root, 'docs', name);
const file = page('settings.md');
const marked = /<!-- settings -->\n[\s\S]*<!-- \/settings -->/;

const table = [
  '| setting | default | what it is |',
  '| --- | --- | --- |',
  ...Object.entries(environment).map(
    ([name, { fallback, about }]) => `| \`${name}\` | ${fallback} | ${about.replaceAll('|', '\\|')} |`,
  ),
].join('\n');

describe('(P10) files that a company needs before it adopts the software', () => {
  const read = (name: string) => readFileSync(join(root, name), 'utf8');

  it('are the licence of package.json, a way to report a vulnerability, and upgrade notes', () => {
    const { license } = JSON.parse(read('package.json')) as { license: string };
    expect(license).toBe('Apache-2.0');
    expect(read('LICENSE')).toMatch(/^\s*Apache License\s+Version 2\.0/);
    expect(read('SECURITY.md')).toMatch(/report/i);
    expect(read('CHANGELOG.md')).toMatch(/^#+ .*Upgrading/m);
  });
});

describe('pages that are made from the source', () => {
  it('settings.md has the table of the settings; RIALTO_UPDATE_GOLDEN=1 writes it anew', () => {
    const section = `<!-- settings -->\n${table}\n<!-- /settings -->`;
    if (process.env.RIALTO_UPDATE_GOLDEN)
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace(marked, () => section),
      );
    expect(marked.exec(readFileSync(file, 'utf8'))![0]).toBe(section);
  });

  it('command-line.md names every command and every client', () => {
    const text = readFileSync(page('command-line.md'), 'utf8');
    const named = (command: ReturnType<typeof createProgram>, path: string): string[] =>
      command.commands.length === 0
        ? [path]
        : command.commands.flatMap((inner) => named(inner, `${path} ${inner.name()}`));
    const commands = named(createProgram({}), '').map((path) => path.trim());
    expect(commands.filter((path) => !text.includes(`\`${path}`))).toEqual([]);
    expect(clients.filter((client) => !text.includes(client))).toEqual([]);
  });
});

/** Returns the agents and servers that the commands and `mcp.config.json` of a page create, as `path name`. */
function madeBy(page: string): string[] {
  const text = readFileSync(join(root, page), 'utf8');
  const created = [...text.matchAll(/```(?:sh|console)\n([\s\S]*?)```/g)].flatMap(([, block]) =>
    [...block!.matchAll(/\/api\/(a2a\/published|mcp\/servers)\s[^{]*\{ ?\\?"(?:name|id)\\?": \\?"([\w-]+)/g)].map(
      ([, path, name]) => `${path} ${name}`,
    ),
  );
  const declared = [...text.matchAll(/```json\n(\{\s*"mcpServers"[\s\S]*?)```/g)].flatMap(([, json]) =>
    Object.keys((JSON.parse(json!) as { mcpServers: object }).mcpServers),
  );
  // Each declared server is also a published agent of the same name.
  return [...created, ...declared.flatMap((name) => [`mcp/servers ${name}`, `a2a/published ${name}`])];
}

describe('documents', () => {
  it('P14 create agents and servers with different names, so that all pages work on one gateway in any order', () => {
    const pages = [
      'README.md',
      ...readdirSync(join(root, 'docs')).flatMap((name) => (name.endsWith('.md') ? [`docs/${name}`] : [])),
    ];
    const made = pages.flatMap((page) => [...new Set(madeBy(page))]);
    expect(made).toEqual(
      expect.arrayContaining([
        ...['a2a/published parrot', 'a2a/published echo', 'a2a/published diary'],
        ...['mcp/servers folder', 'mcp/servers notes', 'mcp/servers diary'],
      ]),
    );
    expect(made.filter((one, index) => made.indexOf(one) !== index)).toEqual([]);
  });

  it.each(['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'docs/decisions/0001-mcp-sdk-lines.md'])(
    '%s links only to existing files',
    (name) => {
      const text = readFileSync(join(root, name), 'utf8');
      const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)\)/g)].map(([, path]) => path!);
      expect(links.filter((path) => !existsSync(join(root, name, '..', path)))).toEqual([]);
    },
  );

  it('CONTRIBUTING.md names only existing scripts', () => {
    const { scripts } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as { scripts: object };
    for (const name of ['README.md', 'CONTRIBUTING.md']) {
      const used = [...readFileSync(join(root, name), 'utf8').matchAll(/npm run (?:-s )?([a-z:]+)/g)].map(
        ([, run]) => run!,
      );
      expect(used.filter((run) => !(run in scripts))).toEqual([]);
    }
  });
});
