import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startWeatherAgent } from '../../../src/demo/agents/weather-agent.js';
import { bareEnv } from '../../support/gateway/cli.js';
import { blocksOf, shows } from '../../support/checks/docs.js';
import { startTestGateway } from '../../support/gateway/gateway.js';
import { mark, readmeEnv, readmeScript } from '../../support/checks/readme.js';

const root = process.cwd();
const page = join(root, 'docs', 'publish-an-agent.md');

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function shell(script: string, folder: string, env = bareEnv()): Promise<{ stdout: string }> {
  const options = { cwd: folder, env, maxBuffer: 10_000_000, timeout: 100_000 };
  try {
    return await promisify(execFile)('sh', ['-ec', script], options);
  } catch (error) {
    const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
    throw new Error(`the commands failed: ${stderr} after ${stdout.split(mark).at(-2)}`, { cause: error });
  }
}

describe('docs/publish-an-agent.md', () => {
  it.each([
    ['by themselves', false],
    ['after those of README.md (P14)', true],
  ])('has commands and programs that work %s, and print the shown output', async (_, isAfter) => {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-docs-'));
    const dataDir = join(folder, '.rialto');
    const agent = await startWeatherAgent();
    const [service, hook, model] = [await freePort(), await freePort(), await freePort()];
    let addresses: [string, string][] = [];
    // A free port may contain the digits of another one.
    const here = (text: string) =>
      addresses.reduce((all, [from, to]) => all.replaceAll(new RegExp(`(?<!\\d)${from}(?!\\d)`, 'g'), to), text);
    const blocks = blocksOf(readFileSync(page, 'utf8'));
    expect(blocks.filter(({ kind }) => kind === 'run').length).toBeGreaterThan(20);

    const config = blocks.find(({ file }) => file === 'rialto.config.json')!;
    writeFileSync(join(folder, 'rialto.config.json'), config.text);
    mkdirSync(join(folder, 'agents'));
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
    const gateway = await startTestGateway({
      RIALTO_DATA_DIR: dataDir,
      RIALTO_CONFIG_FILE: join(folder, 'rialto.config.json'),
      RIALTO_AGENTS_DIR: join(folder, 'agents'),
    });
    addresses = [
      ['http://127.0.0.1:3000', gateway.url],
      ['http://127.0.0.1:4101', agent.url],
      ['4200', String(service)],
      ['4300', String(hook)],
      ['4400', String(model)],
    ];
    for (const { kind, file, text } of blocks) if (kind === 'file') writeFileSync(join(folder, file), here(text));

    const script = blocks
      .map(({ kind, file, text }) => {
        if (kind === 'run') return `${text}echo; echo '${mark}'\n`;
        const program = /node (\w+)\.mjs/.exec(text)?.[1];
        if (kind === 'background') return `${text.trim()} > ${program}.out 2>&1 & ${program}=$!; pids="$pids $!"\n`;
        if (kind === 'printed')
          return `wait $${file.replace('.mjs', '')}; cat ${file.replace('.mjs', '.out')}; echo '${mark}'\n`;
        return '';
      })
      .join('');
    try {
      if (isAfter) await shell(readmeScript(gateway, agent.url), folder, readmeEnv(gateway, dataDir));
      const { stdout } = await shell(
        `pids=; trap 'kill $pids 2>/dev/null || :' EXIT INT TERM\n${here(script)}`,
        folder,
      );
      const printed = stdout.split(`${mark}\n`);
      const shown = blocks.filter(({ kind }) => kind === 'run' || kind === 'printed');
      for (const [index, { text, output }] of shown.entries())
        if (output)
          expect({ text, ...shows(here(output.text), output.language, printed[index]!) }).toEqual({
            text,
            wrong: [],
          });
    } finally {
      await agent.close();
      await gateway.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
