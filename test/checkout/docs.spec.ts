import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodes, type ErrorCode } from '../../src/kernel/errors.js';
import { environment } from '../../src/platform/config/env.schema.js';
import { Metrics } from '../../src/platform/telemetry/metrics.js';
import { errorRows, type ErrorRow } from '../../src/protocol/a2a/error/error-table.js';
import { runEvent } from '../../src/protocol/a2a/run/run-event.js';
import { wordOf, type TaskState } from '../../src/protocol/a2a/states.js';
import { blocksOf, shows } from '../support/checks/docs.js';

const folder = join(__dirname, '..', '..', 'docs');
const file = join(folder, 'publish-an-agent.md');
const marked = /<!-- errors -->\n[\s\S]*<!-- \/errors -->/;
/** Codes that only the management API or MCP uses. */
const elsewhere: readonly ErrorCode[] = [
  'slug_taken',
  'card_invalid',
  'policy_invalid',
  'unprocessable',
  'no_agent',
  'header_mismatch',
];

function rowOf(code: ErrorCode): string {
  const row: ErrorRow = errorRows[code];
  const rpc = row.rpc === 'auth' ? '-32000' : String(row.rpc);
  const reason = row.reason === 'none' ? '' : `\`${row.reason ?? code.toUpperCase()}\``;
  return `| ${errorCodes[code].title} | ${rpc} | ${row.http} | ${row.grpc} | ${reason} |`;
}

const table = [
  '| error | JSON-RPC | HTTP | gRPC | reason |',
  '| --- | --- | --- | --- | --- |',
  ...(Object.keys(errorRows) as ErrorCode[]).filter((code) => !elsewhere.includes(code)).map(rowOf),
].join('\n');

describe('docs/publish-an-agent.md', () => {
  it('has the table of the errors; RIALTO_UPDATE_GOLDEN=1 rewrites it', () => {
    const section = `<!-- errors -->\n${table}\n<!-- /errors -->`;
    if (process.env.RIALTO_UPDATE_GOLDEN)
      writeFileSync(
        file,
        readFileSync(file, 'utf8').replace(marked, () => section),
      );
    expect(marked.exec(readFileSync(file, 'utf8'))![0]).toBe(section);
  });

  it('names every state with its v0.3 name', () => {
    const rows = [...readFileSync(file, 'utf8').matchAll(/^\| `(TASK_STATE_\w+)` \| `([\w-]+)` \|/gm)];
    expect(rows).toHaveLength(8);
    expect(rows.filter(([, state, word]) => wordOf(state as TaskState) !== word)).toEqual([]);
  });
});

describe('docs/dispatch.md', () => {
  it('shows a post with the field names of runs', () => {
    const [, sample] = /```json\n(\{ "run_id"[\s\S]*?)```/.exec(readFileSync(join(folder, 'dispatch.md'), 'utf8'))!;
    const post = JSON.parse(sample!) as ReturnType<typeof runEvent>;
    const status = { state: 'TASK_STATE_COMPLETED' } as const;
    const artifacts = [{ artifactId: 'a', parts: [{ data: { deployed: true } }] }];
    const task = { id: post.run_id, contextId: 'c', status, artifacts };
    expect(post).toEqual(runEvent(task, { status }, post.progress, post.agent_name));
  });
});

describe('the files that readers of the pages create', () => {
  it('are ignored by git', () => {
    const pages = readdirSync(folder).filter((name) => name.endsWith('.md'));
    const text = pages.map((page) => readFileSync(join(folder, page), 'utf8')).join('\n');
    const files = [...text.matchAll(/<!-- file: (\S+) -->/g)].map(([, name]) => `/${name}`);
    const ignored = readFileSync(join(folder, '..', '.gitignore'), 'utf8').split('\n');
    expect(files.length).toBeGreaterThan(5);
    expect(files.filter((name) => !ignored.includes(name))).toEqual([]);
  });
});

describe('docs/operate.md', () => {
  it('has the table of the metrics; RIALTO_UPDATE_GOLDEN=1 rewrites it', async () => {
    const page = join(folder, 'operate.md');
    const between = /<!-- metrics -->\n[\s\S]*<!-- \/metrics -->/;
    const all = (await new Metrics().registry.getMetricsAsJSON()).filter(({ name }) => name.startsWith('rialto_'));
    const labels = new Metrics().registry.getMetricsAsArray() as unknown as { name: string; labelNames: string[] }[];
    const rows = all.map(({ name, help, type }) => {
      const own = labels.find((metric) => metric.name === name)!.labelNames;
      return `| \`${name}\` | ${type} | ${own.map((label) => `\`${label}\``).join(', ')} | ${help} |`;
    });
    const table = ['| metric | type | labels | tells |', '| --- | --- | --- | --- |', ...rows].join('\n');
    const section = `<!-- metrics -->\n${table}\n<!-- /metrics -->`;
    if (process.env.RIALTO_UPDATE_GOLDEN)
      writeFileSync(
        page,
        readFileSync(page, 'utf8').replace(between, () => section),
      );
    expect(between.exec(readFileSync(page, 'utf8'))![0]).toBe(section);
  });
});

describe.each(readdirSync(folder).filter((name) => name.endsWith('.md')))('docs/%s', (name) => {
  const text = readFileSync(join(folder, name), 'utf8');

  it('names only existing settings', () => {
    const named = [...text.matchAll(/\b((?:RIALTO|A2A)_[A-Z_0-9]+)\b/g)].map(([, setting]) => setting!);
    const isKnown = (setting: string) => setting in environment || setting.replace(/_FILE$/, '') in environment;
    expect(named.filter((setting) => !isKnown(setting) && setting !== 'RIALTO_TOKEN')).toEqual([]);
  });

  it('links only to existing files and headings', () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)]+)\)/g)].map(([, link]) => link!.split('#'));
    const missing = links.filter(([path, heading]) => {
      const target = path === '' ? join(folder, name) : join(folder, path!);
      if (!existsSync(target)) return true;
      return heading !== undefined && !headingsOf(readFileSync(target, 'utf8')).includes(heading);
    });
    expect(missing).toEqual([]);
  });
});

/** Returns the anchors of the headings of a page, as GitHub makes them. */
function headingsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.+)$/gm)].map(([, words]) =>
    words!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

describe('a page of the documentation', () => {
  const page = '<!-- run -->\n```sh\necho 1\n```\n```json\n{ "a": "…" }\n```\n\n```sh\nnot run\n```\n';

  it('has blocks with their output', () => {
    const output = { language: 'json', text: '{ "a": "…" }\n' };
    expect(blocksOf(page)).toEqual([{ kind: 'run', file: '', text: 'echo 1\n', output }]);
  });

  it.each([
    ['json', '{ "a": "x…", "b": [{ "c": 1 }] }', '{ "a": "xy", "b": [{ "c": 1, "d": 2 }], "e": 3 }'],
    ['text', 'id: …\nend', 'id: 12\nend\n'],
  ])('may show %s with omitted parts', (language, shown, printed) => {
    expect(shows(shown, language, printed)).toEqual({ wrong: [] });
  });

  it.each([
    ['another value', 'json', '{ "a": 1 }', '{ "a": 2 }'],
    ['a missing member', 'json', '{ "a": {} }', '{}'],
    ['a shorter list', 'json', '{ "a": [1] }', '{ "a": [1, 2] }'],
    ['another line', 'text', 'id: …', 'id: 12\nend'],
  ])('fails for %s', (_what, language, shown, printed) => {
    expect(shows(shown, language, printed).wrong).not.toEqual([]);
  });
});
