// `node scripts/chaos.mjs [--long] [--seed=…] [--only=part,…]`: sets up the checkout and runs test/chaos on separate
// servers.
import { join } from 'node:path';
import { root, run, setUp } from './setup.mjs';

await setUp();
process.stderr.write(`Node ${process.version}\n`);
const files = [join(root, 'scripts', 'register-typescript.mjs'), join(root, 'test', 'chaos', 'run.ts')];
// The parts start hundreds of gateways, and each would compile the product again.
const env = { ...process.env, NODE_COMPILE_CACHE: join(root, '.cache', 'compiled') };
process.exit(await run(process.execPath, ['--import', ...files, ...process.argv.slice(2)], { env }));
