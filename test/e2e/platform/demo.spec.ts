import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ended, startEntry } from '../../support/gateway/cli.js';
import { processesBelow } from '../../support/gateway/process.js';

const readme = join(process.cwd(), 'README.md');
const marked = /<!-- demo -->\n```text\n([\s\S]*?)\n```\n<!-- \/demo -->/;

/** Replaces the parts that differ between runs: ports, times and durations. */
function normalized(output: string): string {
  return output
    .replace(/127\.0\.0\.1:\d+/g, '127.0.0.1:PORT')
    .replace(/\d\d:\d\d:\d\d\.\d{3}/g, 'hh:mm:ss.SSS')
    .replace(/Done in [\d.]+ s/, 'Done in n s')
    .trim();
}

/** Compares a run with the one in the README; RIALTO_UPDATE_GOLDEN=1 replaces the latter. */
function compareWithReadme(stdout: string): void {
  const text = readFileSync(readme, 'utf8');
  const section = `<!-- demo -->\n\`\`\`text\n${stdout.trim()}\n\`\`\`\n<!-- /demo -->`;
  if (process.env.RIALTO_UPDATE_GOLDEN)
    writeFileSync(
      readme,
      text.replace(/<!-- demo -->[\s\S]*<!-- \/demo -->/, () => section),
    );
  const shown = marked.exec(readFileSync(readme, 'utf8'))?.[1] ?? '';
  expect(normalized(shown)).toBe(normalized(stdout));
}

describe('npm run demo', () => {
  let folder: string;
  beforeEach(() => (folder = mkdtempSync(join(tmpdir(), 'rialto-tour-'))));
  afterEach(() => rmSync(folder, { recursive: true, force: true }));
  const start = (env: Record<string, string> = {}) => startEntry('demo/main.ts', [], { TMPDIR: folder, ...env });

  it('tours a running system and leaves nothing behind', async () => {
    // The settings of a user's gateway must not affect the tour.
    const { code, stdout, stderr } = await ended(start({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' }));
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/Weather is weather: A2A 1\.0, healthy/);
    expect(stdout).toMatch(/Deploy Ops is deploy_ops: A2A 0\.3, healthy/);
    expect(stdout).toMatch(/protocol 2026-07-28\n +a2a_deploy_ops_deploy/);
    expect(stdout).toMatch(/"city":"Lisbon"/);
    expect(stdout).toMatch(/branch main: +error -32003: .*no-deploys-of-main/);
    expect(stdout).toMatch(/received 1 message for these two calls/);
    expect(stdout).toMatch(/branch main: +deny by no-deploys-of-main/);
    expect(stdout).toMatch(/branch preview: +allow by/);
    expect(stdout).toMatch(/deploy_ops\.deploy +denied +no-deploys-of-main/);
    expect(stdout).toMatch(/chain of \d+ events: valid/);
    expect(stdout).not.toContain('\u001b');
    compareWithReadme(stdout);
    expect(readdirSync(folder)).toEqual([]);
    expect(processesBelow(folder)).toEqual([]);
  });

  it('cleans up when it is interrupted', async () => {
    const child = start();
    const end = ended(child);
    child.stdout!.on('data', (text: Buffer) => text.includes('2. ') && child.kill('SIGINT'));
    expect((await end).code).toBe(130);
    expect(readdirSync(folder)).toEqual([]);
    expect(processesBelow(folder)).toEqual([]);
  });

  it('names the step that failed', async () => {
    const child = start();
    const end = ended(child);
    await once(child.stdout!, 'data');
    const agent = processesBelow(folder).find((pid) =>
      readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes('weather-agent'),
    );
    process.kill(agent!, 'SIGKILL');
    const { code, stderr } = await end;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^rialto demo: "Register two agents[^"]*" failed: .+\n$/);
    expect(readdirSync(folder)).toEqual([]);
    expect(processesBelow(folder)).toEqual([]);
  });
});
