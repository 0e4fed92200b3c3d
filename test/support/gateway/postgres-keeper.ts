// A process of its own that runs an embedded PostgreSQL for a test: it prints one line of JSON and stops the server when its
// standard input ends, which also happens when the process that started it was killed.
import { startEmbeddedPostgres } from '../../../src/platform/database/embedded-postgres.js';

const [dataDir = '', settings = '{}'] = process.argv.slice(2);
const server = await startEmbeddedPostgres({ dataDir, settings: JSON.parse(settings) as Record<string, string> });
process.on('SIGINT', () => undefined); // Ctrl-C ends the tests first
process.stdout.write(`${JSON.stringify({ url: server.url, pid: server.pid })}\n`);
process.stdin.resume().once('close', () => void server.stop().then(() => process.exit(0)));
