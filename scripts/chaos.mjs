// `node scripts/chaos.mjs [--long] [--seed=…] [--only=part,…]`: sets the checkout up and runs test/chaos on servers of its own.
import { join } from 'node:path';
import { root, run, setUp } from './setup.mjs';

await setUp();
process.stderr.write(`Node ${process.version}\n`);
const files = [join(root, 'scripts', 'register-typescript.mjs'), join(root, 'test', 'chaos', 'run.ts')];
process.exit(await run(process.execPath, ['--import', ...files, ...process.argv.slice(2)]));
