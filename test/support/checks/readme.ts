import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { bareEnv } from '../gateway/cli.js';
import { testSecret, type TestGateway } from '../gateway/gateway.js';

const root = process.cwd();
/** Separates the output of one block from the output of the next. */
export const mark = '@@ next block @@';

/** The pages with commands that continue each other, in their order. */
const pages = ['README.md', 'docs/dispatch.md', 'docs/policies.md', 'docs/access.md'];

/** The commands of these pages, and what each must print. */
export function readmeBlocks(): { expected: string; script: string }[] {
  const text = pages.map((page) => readFileSync(join(root, page), 'utf8')).join('\n');
  const blocks = text.matchAll(/<!-- run(?:: (.+?))? -->\n```sh\n([\s\S]*?)```/g);
  return [...blocks].map(([, expected = '', script]) => ({ expected, script: script! }));
}

/**
 * Joins all commands into one shell program, with the addresses of the page replaced by those of the gateway and the
 * agent.
 */
export function readmeScript(gateway: TestGateway, agentUrl: string): string {
  const rialto = `"${process.execPath}" --import "${root}/scripts/register-typescript.mjs" "${root}/src/cli.ts"`;
  return readmeBlocks()
    .map(({ script }) => script)
    .join(`echo; echo '${mark}'\n`)
    .replaceAll('http://127.0.0.1:3000', gateway.url)
    .replaceAll('http://127.0.0.1:4101', agentUrl)
    .replaceAll('npm run -s rialto --', rialto)
    .replaceAll('npm run -s token --', `${rialto} token`);
}

export function readmeEnv(gateway: TestGateway, dataDir: string): Record<string, string | undefined> {
  return bareEnv({
    NODE_ENV: 'test',
    DATABASE_URL: gateway.database.url,
    A2A_SECRET: testSecret,
    RIALTO_DATA_DIR: dataDir,
  });
}
