// Runs an embedded PostgreSQL for a test in a separate process. It prints one line of JSON, and stops the server when
// its standard input ends. That also happens when the parent process is killed.
import { startEmbeddedPostgres } from '../../../src/platform/database/embedded-postgres.js';

const [dataDir = '', settings = '{}'] = process.argv.slice(2);
const server = await startEmbeddedPostgres({ dataDir, settings: JSON.parse(settings) as Record<string, string> });
process.on('SIGINT', () => undefined); // Ctrl-C ends the tests first
process.stdout.write(`${JSON.stringify({ url: server.url, pid: server.pid })}\n`);
process.stdin.resume().once('close', () => void server.stop().then(() => process.exit(0)));
