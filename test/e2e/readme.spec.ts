import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startWeatherAgent } from '../../src/demo/agents/weather-agent.js';
import { bareEnv } from '../support/cli.js';
import { startTestGateway, testSecret } from '../support/gateway.js';

const root = process.cwd();
/** Shell blocks behind a comment `run`; what follows the colon must be part of what the block prints. */
const blocks = [
  ...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/<!-- run(?:: (.+?))? -->\n```sh\n([\s\S]*?)```/g),
].map(([, expected = '', script]) => ({ expected, script: script! }));
const mark = '@@ next block @@';

describe('README.md', () => {
  it('has commands that work in their order, as printed', async () => {
    expect(blocks.length).toBeGreaterThan(8);
    const folder = mkdtempSync(join(tmpdir(), 'rialto-readme-'));
    const dataDir = join(folder, '.rialto');
    const gateway = await startTestGateway({ RIALTO_DATA_DIR: dataDir });
    const agent = await startWeatherAgent();
    const rialto = `"${process.execPath}" --import "${root}/scripts/register-typescript.mjs" "${root}/src/cli.ts"`;
    const script = blocks
      .map(({ script: block }) => block)
      .join(`echo; echo '${mark}'\n`)
      .replaceAll('http://127.0.0.1:3000', gateway.url)
      .replaceAll('http://127.0.0.1:4101', agent.url)
      .replaceAll('npm run -s rialto --', rialto)
      .replaceAll('npm run -s token --', `${rialto} token`);
    const env = bareEnv({
      NODE_ENV: 'test',
      DATABASE_URL: gateway.database.url,
      A2A_SECRET: testSecret,
      RIALTO_DATA_DIR: dataDir,
    });
    try {
      const { stdout } = await promisify(execFile)('sh', ['-ec', script], { cwd: folder, env });
      const printed = stdout.split(mark);
      for (const [index, { expected, script: block }] of blocks.entries())
        expect({ block, printed: printed[index] }).toEqual({ block, printed: expect.stringContaining(expected) });
    } finally {
      await agent.close();
      await gateway.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
