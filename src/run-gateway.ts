import 'reflect-metadata';
import { startGateway, type Gateway } from './app.js';
import { RialtoError } from './kernel/errors.js';
import { environmentOfProcess, hideEnvironment } from './platform/config/environment.js';
import { isAuthConfigured, SettingsError } from './platform/config/settings.js';
import { versionText } from './platform/telemetry/version.js';
import { keepOptimisedCode } from './v8-flags.js';

// Writing to a closed terminal fails; the process must still stop all its parts.
for (const output of [process.stdout, process.stderr]) output.on('error', () => undefined);

/** Milliseconds after the first signal from which a second signal ends the process at once. */
const secondSignalMs = 1_000;
/**
 * Every part stops within 25 s. A part that does not still leaves Kubernetes one second of the shortest grace period
 * that the chart allows.
 */
const stopLimitMs = 29_000;
/** V8 collects the garbage of the start about 8 s after it. */
const settledMs = 15_000;

async function main(): Promise<void> {
  hideEnvironment();
  const starting = startGateway(environmentOfProcess());
  let since: number | undefined;
  const stop = (signal: NodeJS.Signals): void => {
    // A terminal and npm both send Ctrl-C, so the second signal counts only when it comes later.
    if (since !== undefined) return void (performance.now() - since > secondSignalMs && process.exit(1));
    since = performance.now();
    process.stderr.write(`${signal}: draining\n`);
    const warning = setTimeout(
      () => process.stderr.write(`waiting for running work, at most 25 s; ${signal} again ends the process at once\n`),
      secondSignalMs,
    );
    warning.unref();
    setTimeout(() => {
      process.stderr.write('some parts did not stop in time; the process ends without them\n');
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
  setTimeout(keepOptimisedCode, settledMs).unref();
}

/** Warning for the log of a pod that never gets ready: the reason must not be only at `/readyz` (AN-43). */
const closedWarning = 'A2A_SECRET is not set: every agent door and /readyz answer 503; set it to at least 32 bytes';

/** Warning for a gateway that other machines reach, while its cards send them to themselves. */
const loopbackWarning =
  'RIALTO_PUBLIC_URL is not set: ' +
  'agent cards and work orders name a loopback address, which other machines cannot reach';

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
  const isOpen = settings.HOST === '0.0.0.0' || settings.HOST === '::';
  if (isOpen && settings.RIALTO_PUBLIC_URL === undefined && settings.RIALTO_ROLE !== 'worker')
    process.stderr.write(`rialto: ${loopbackWarning}\n`);
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
