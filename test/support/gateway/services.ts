import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { createInterface } from 'node:readline';

/** A Redis server for one test, in memory. */
export interface PrivateRedis {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  stop(): Promise<void>;
}

/**
 * Starts a redis-server on port `at` or on a free port. Returns undefined when no redis-server is installed. The server
 * ends with this process.
 */
export async function startRedis(at?: number): Promise<PrivateRedis | undefined> {
  if (!isInstalled('redis-server')) return undefined;
  for (let attempt = 0; attempt < 5; attempt++) {
    const port = at ?? (await freePort());
    const flags = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', '/tmp'];
    const child = spawn('redis-server', flags, { stdio: ['ignore', 'pipe', 'ignore'] });
    if (await isReady(child)) return handleOf(child, port);
  }
  throw new Error('redis-server did not start after 5 attempts');
}

function handleOf(child: ChildProcess, port: number): PrivateRedis {
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  const stop = async (): Promise<void> => {
    process.removeListener('exit', kill);
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
  };
  return { url: `redis://127.0.0.1:${port}`, port, pid: child.pid!, stop };
}

async function isReady(child: ChildProcess): Promise<boolean> {
  for await (const line of createInterface(child.stdout!)) {
    if (!line.includes('Ready to accept connections')) continue;
    child.stdout!.resume();
    return true;
  }
  return false;
}

/** Tells whether a program is installed. */
export function isInstalled(program: string): boolean {
  try {
    execFileSync(program, ['--version'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** Returns a free port of the loopback interface. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  return port;
}
