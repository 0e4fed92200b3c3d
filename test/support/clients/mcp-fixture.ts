import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

const script = join(import.meta.dirname, '../../mcp-conformance/fixture.mjs');

/**
 * Starts the server of the conformance suites in a separate process.
 * @param eras that the server supports.
 */
export async function startFixture(eras: 'auto' | 'legacy' | 'modern' = 'auto') {
  const child = spawn(process.execPath, [script, '0', eras], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  return {
    url: line.toString().trim(),
    close: async (): Promise<void> => {
      const gone = once(child, 'exit');
      child.kill('SIGKILL');
      await gone;
    },
  };
}
