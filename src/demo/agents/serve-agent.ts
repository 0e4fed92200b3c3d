import { realpathSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { pathToFileURL } from 'node:url';

/** A demo agent that listens: its base URL, a listener for each message that it receives, and a way to stop it. */
export interface RunningAgent {
  url: string;
  onMessage: (listener: () => void) => void;
  close(): Promise<void>;
}

/** Listens on loopback (port 0 means a free port) and serves the handler that `build` returns for its URL. */
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
  const onMessage = (listener: () => void) =>
    void server.on('request', ({ method }: { method?: string }) => method === 'POST' && listener());
  return { url, onMessage, close };
}

/**
 * Runs an agent when its file is the entry of the process, but not when the file is imported. The port is the first
 * argument. The ready line on stdout is `{"url": …}`; a line `{"messages": n}` follows for each received message.
 */
export async function runWhenEntry(moduleUrl: string, start: (port: number) => Promise<RunningAgent>): Promise<void> {
  const entry = process.argv[1];
  if (entry === undefined || pathToFileURL(realpathSync(entry)).href !== moduleUrl) return;
  const { url, onMessage } = await start(Number(process.argv[2] ?? 0));
  const printJson = (line: object) => void process.stdout.write(`${JSON.stringify(line)}\n`);
  printJson({ url });
  let messages = 0;
  onMessage(() => printJson({ messages: ++messages }));
}
