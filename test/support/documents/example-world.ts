import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { connect, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { bareEnv } from '../gateway/cli.js';
import { startTestGateway, type TestGateway } from '../gateway/gateway.js';
import { exampleTls } from './example-tls.js';

const root = process.cwd();
const run = promisify(execFile);
/** Members of a compilation as strict as the examples need, against the types of the built package. */
const compilerFlags = [
  '--strict',
  '--target es2023',
  '--module nodenext',
  '--skipLibCheck',
  '--types node',
  `--typeRoots ${join(root, 'node_modules', '@types')}`,
]
  .join(' ')
  .split(' ');

/**
 * A gateway that answers at every address `https://*.example.com`, and programs that reach it there: the examples of a
 * document run with their own addresses.
 */
export interface ExampleWorld {
  readonly gateway: TestGateway;
  /** The folder in which the programs run. */
  readonly folder: string;
  /** Runs shell commands and returns their output. `$TOKEN` is the token of an admin. */
  sh(script: string, env?: Record<string, string>): Promise<string>;
  /** Runs shell commands that print one JSON value. */
  json(script: string, env?: Record<string, string>): Promise<any>;
  /** Compiles a TypeScript program with `--strict` against the built package, runs it and returns its output. */
  typescript(source: string, env?: Record<string, string>): Promise<string>;
  close(): Promise<void>;
}

/** @param files files that the gateway needs at its start, by their names; `$folder` in a setting is their folder. */
export async function startExampleWorld(
  host: string,
  settings: Record<string, string> = {},
  files: Record<string, object> = {},
): Promise<ExampleWorld> {
  const folder = mkdtempSync(join(tmpdir(), 'rialto-document-'));
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), JSON.stringify(content));
  const placed = Object.entries(settings).map(([name, value]) => [name, value.replace('$folder', folder)]);
  const gateway = await startTestGateway({ RIALTO_PUBLIC_URL: `https://${host}`, ...Object.fromEntries(placed) });
  const door = createServer(exampleTls, (socket) => {
    const inside = connect(Number(new URL(gateway.url).port), '127.0.0.1');
    socket.pipe(inside).pipe(socket);
    for (const [one, other] of [
      [socket, inside],
      [inside, socket],
    ] as const)
      one.on('error', () => other.destroy()).on('close', () => other.destroy());
  });
  await new Promise<void>((resolve) => door.listen(0, '127.0.0.1', resolve));
  const { port } = door.address() as AddressInfo;

  const certificate = join(folder, 'certificate.pem');
  writeFileSync(certificate, exampleTls.cert);
  writeFileSync(
    join(folder, '.curlrc'),
    `connect-to = "::127.0.0.1:${port}"\ncacert = "${certificate}"\nsilent\nshow-error\n`,
  );
  writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
  mkdirSync(join(folder, 'node_modules'));
  symlinkSync(root, join(folder, 'node_modules', 'rialto'));
  const ownEnv = {
    CURL_HOME: folder,
    NODE_EXTRA_CA_CERTS: certificate,
    RIALTO_TEST_EXAMPLE_PORT: String(port),
    TOKEN: gateway.token,
  };
  const start = async (command: string, args: string[], env: Record<string, string> = {}): Promise<string> => {
    try {
      const options = { cwd: folder, env: bareEnv({ ...ownEnv, ...env }), timeout: 60_000 };
      return (await run(command, args, options)).stdout;
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string };
      throw new Error(`the example failed: ${stdout}${stderr}`, { cause: error });
    }
  };
  const sh: ExampleWorld['sh'] = (script, env) => start('sh', ['-ec', script], env);
  const preload = pathToFileURL(join(root, 'test', 'support', 'documents', 'to-gateway.mjs')).href;
  return {
    gateway,
    folder,
    sh,
    json: async (script, env) => JSON.parse(await sh(script, env)) as unknown,
    typescript: async (source, env) => {
      writeFileSync(join(folder, 'example.ts'), source);
      await start(process.execPath, [
        join(root, 'node_modules', 'typescript', 'bin', 'tsc'),
        ...compilerFlags,
        'example.ts',
      ]);
      return start(process.execPath, ['--import', preload, 'example.js'], env);
    },
    close: async () => {
      door.close();
      await gateway.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
