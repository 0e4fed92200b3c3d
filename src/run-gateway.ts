import 'reflect-metadata';
import { startGateway, type Gateway } from './app.js';
import { RialtoError } from './kernel/errors.js';
import { environmentOfProcess, hideEnvironment } from './platform/config/environment.js';
import { isAuthConfigured, SettingsError } from './platform/config/settings.js';
import { versionText } from './platform/telemetry/version.js';

// A terminal that was closed takes no more lines; that is no reason to die before everything is stopped.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

/** How long after the first signal a second one means that nobody wants to wait. */
const insistMs = 1_000;
/** Every part stops within 25 s; what does not leaves Kubernetes a second of the least grace period that the chart allows. */
const stopLimitMs = 29_000;

async function main(): Promise<void> {
  hideEnvironment();
  const starting = startGateway(environmentOfProcess());
  let since: number | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    // A terminal and npm send the same Ctrl-C twice; a person who insists does so later.
    if (since !== undefined) return void (performance.now() - since > insistMs && process.exit(1));
    since = performance.now();
    process.stderr.write(`${signal}: draining\n`);
    const patience = setTimeout(
      () => process.stderr.write(`waiting for what is under way, at most 25 s; ${signal} again ends it at once\n`),
      insistMs,
    );
    patience.unref();
    setTimeout(() => {
      process.stderr.write('not everything has stopped in time; it is left\n');
      process.exit(1);
    }, stopLimitMs);
    starting
      .then((gateway) => gateway.close())
      .then(
        () => process.exit(0),
        () => process.exit(1),
      );
  };
  process.on('SIGINT', stop).on('SIGTERM', stop).on('SIGHUP', stop);
  const gateway = await starting;
  if (since === undefined) announce(gateway);
}

/** A pod that never gets ready has to say why in its own log, not only at `/readyz` (AN-43). */
const closedWarning = 'A2A_SECRET is not set: every agent door and /readyz answer 503; set it to at least 32 bytes';

function announce({ url, settings, metricsPort, grpcPort, tokenFile }: Gateway): void {
  const publicUrl = settings.RIALTO_PUBLIC_URL?.replace(/\/$/, '') ?? url;
  const doors = [
    `  MCP      ${publicUrl}/mcp`,
    `  card     ${publicUrl}/.well-known/agent-card.json`,
    `  API      ${publicUrl}/docs`,
    `  queues   ${publicUrl}/admin/queues`,
  ];
  const lines = [
    `Rialto is ready on ${url} (role ${settings.RIALTO_ROLE}, ${process.uptime().toFixed(1)} s)`,
    `  version  ${versionText()}`,
    ...(settings.RIALTO_ROLE === 'worker' ? [] : doors),
    ...(grpcPort === undefined ? [] : [`  gRPC     ${settings.HOST}:${grpcPort}`]),
    ...(metricsPort === undefined ? [] : [`  metrics  http://${settings.HOST}:${metricsPort}/metrics`]),
    ...(tokenFile === undefined ? [] : [`  token    ${tokenFile}`]),
  ];
  process.stdout.write(`${lines.join('\n')}\n`);
  if (!isAuthConfigured(settings)) process.stderr.write(`rialto: ${closedWarning}\n`);
}

main().catch((error: unknown) => {
  const lines =
    error instanceof SettingsError
      ? error.problems
      : [error instanceof RialtoError ? error.message : `internal error: ${(error as Error).stack}`];
  process.stderr.write(`${lines.map((line) => `rialto: ${line}`).join('\n')}\n`);
  process.exit(1);
});
