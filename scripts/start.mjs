// `node scripts/start.mjs [file of dist] [arguments …]`: sets up the checkout, then runs that program in this process,
// so that signals, exit code and standard streams are those of the program.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { root, setUp } from './setup.mjs';

await setUp();
if (process.env.npm_lifecycle_event) followParent();
const [file = 'dist/src/main.js', ...args] = process.argv.slice(2);
const entry = join(root, file);
process.argv = [process.execPath, entry, ...args];
await import(pathToFileURL(entry).href);

/** Stops the program when the npm that started it is killed, because npm could not stop it any more. */
function followParent() {
  const parent = process.ppid;
  const check = () => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    process.kill(process.pid, 'SIGTERM');
  };
  const timer = setInterval(check, 200).unref();
}
