import '../v8-flags.js';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../kernel/clock.js';
import { environmentOfProcess } from '../platform/config/environment.js';
import { GatewayUser } from './gateway-user.js';
import { bareEnvironment, Programs, type Program } from './processes.js';
import { steps, type Stage } from './tour.js';

const startedAt = systemClock.elapsed();
const print = (text: string): void => void process.stdout.write(`${text}\n`);
const indented = (lines: readonly string[]): string => lines.join('\n').replace(/^/gm, '   ');

let currentStep = 'Prepare a folder';
const folder = mkdtempSync(join(tmpdir(), 'rialto-demo-'));
chmodSync(folder, 0o755); // the embedded database may run under another account, which must be able to open the folder
const programs = new Programs(folder);
let user: GatewayUser | undefined;
let ending: Promise<void> | undefined;

/** Stops every process and deletes every file of the demo. */
function end(): Promise<void> {
  return (ending ??= (async () => {
    await user?.close().catch(() => undefined);
    await programs.close();
    rmSync(folder, { recursive: true, force: true });
  })());
}

async function open(): Promise<Stage> {
  const env = bareEnvironment(environmentOfProcess());
  const agent = (file: string): Promise<Program> =>
    programs.startProgram(`agents/${file}`, env, (line) => (JSON.parse(line) as { url?: string }).url);
  currentStep = 'Start two agents, each a process of its own';
  const [weather, deploy] = await Promise.all([agent('weather-agent'), agent('deploy-agent')]);
  print(`1. ${currentStep}\n${indented([`weather ${weather.ready}`, `deploy  ${deploy.ready}`])}`);
  currentStep = 'Start the gateway on a database of its own';
  const settings = { NODE_ENV: 'development', PORT: '0', METRICS_PORT: '0', RIALTO_LOG_LEVEL: 'warn' };
  const gateway = await programs.startProgram(
    '../main',
    { ...env, ...settings, RIALTO_DATA_DIR: join(folder, 'data') },
    (line) => /^Rialto is ready on (\S+)/.exec(line)?.[1],
  );
  print(`\n2. ${currentStep}\n${indented([`Rialto ${gateway.ready}`])}`);
  user = new GatewayUser(gateway.ready, readFileSync(join(folder, 'data', 'token'), 'utf8').trim());
  return { user, weather, deploy };
}

async function main(): Promise<void> {
  const stage = await open();
  for (const [index, { title, run }] of steps.entries()) {
    currentStep = title;
    print(`\n${index + 3}. ${title}\n${indented(await run(stage))}`);
  }
  await end();
  const seconds = ((systemClock.elapsed() - startedAt) / 1_000).toFixed(1);
  print(`\nDone in ${seconds} s; everything was stopped and removed. Start your own with npm start.`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => void end().finally(() => process.exit(signal === 'SIGINT' ? 130 : 143)));
}

main().catch(async (error: unknown) => {
  if (ending) return;
  await end();
  process.stderr.write(`rialto demo: "${currentStep}" failed: ${(error as Error).message}\n`);
  process.exitCode = 1;
});
