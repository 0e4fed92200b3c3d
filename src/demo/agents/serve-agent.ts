import { realpathSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pathToFileURL } from 'node:url';

/** A demo agent that listens: its base URL, who is told of each message it receives, and how to stop it. */
export interface RunningAgent {
  url: string;
  onMessage: (told: () => void) => void;
  close(): Promise<void>;
}

/** Listens on loopback (0 = a free port) and serves what `build` makes for the URL it got. */
export async function serveAgent(port: number, build: (url: string) => RequestListener): Promise<RunningAgent> {
  const server = createServer();
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  server.on('request', build(url));
  const close = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      server.closeAllConnections();
    });
  const onMessage = (told: () => void) =>
    void server.on('request', ({ method }: { method?: string }) => method === 'POST' && told());
  return { url, onMessage, close };
}

/**
 * Runs an agent when its file is the entry of the process, not when it is imported: the port is the first argument, the
 * ready line on stdout is `{"url": …}`, and a line `{"messages": n}` follows for each message received.
 */
export async function runWhenEntry(moduleUrl: string, start: (port: number) => Promise<RunningAgent>): Promise<void> {
  const entry = process.argv[1];
  if (entry === undefined || pathToFileURL(realpathSync(entry)).href !== moduleUrl) return;
  const { url, onMessage } = await start(Number(process.argv[2] ?? 0));
  const say = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`);
  say({ url });
  let messages = 0;
  onMessage(() => say({ messages: ++messages }));
}
