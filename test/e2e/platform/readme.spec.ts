import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startWeatherAgent } from '../../../src/demo/agents/weather-agent.js';
import { startTestGateway } from '../../support/gateway/gateway.js';
import { mark, readmeBlocks, readmeEnv, readmeScript } from '../../support/checks/readme.js';

describe('README.md', () => {
  it('has commands that work in their order, with the shown output', async () => {
    const blocks = readmeBlocks();
    expect(blocks.length).toBeGreaterThan(8);
    const folder = mkdtempSync(join(tmpdir(), 'rialto-readme-'));
    const dataDir = join(folder, '.rialto');
    const gateway = await startTestGateway({ RIALTO_DATA_DIR: dataDir });
    const agent = await startWeatherAgent();
    try {
      const env = readmeEnv(gateway, dataDir);
      const { stdout } = await promisify(execFile)('sh', ['-ec', readmeScript(gateway, agent.url)], {
        cwd: folder,
        env,
      });
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
