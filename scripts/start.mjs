// `node scripts/start.mjs [file of dist] [arguments …]`: sets the checkout up, then becomes that program. It runs in this very
// process, so signals, exit code and standard streams are its own.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root, setUp } from './setup.mjs';

await setUp();
if (process.env.npm_lifecycle_event) followParent();
const [file = 'dist/src/main.js', ...args] = process.argv.slice(2);
const entry = join(root, file);
process.argv = [process.execPath, entry, ...args];
await import(pathToFileURL(entry).href);

/** Stops the program when the npm that started it is killed: nobody could stop it with npm any more. */
function followParent() {
  const parent = process.ppid;
  const look = () => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  };
  const timer = setInterval(look, 200).unref();
}
