import { callerOf, type Caller } from '../gateway/caller.js';

/** The gateway that scripts/shipped.mjs started: API and worker as separate processes, from the files of the image. */
export interface Shipped extends Caller {
  readonly workerUrl: string;
  readonly metricsUrls: readonly [api: string, worker: string];
  /** Host and port of the gRPC services. */
  readonly grpc: string;
  readonly adminPassword: string;
  readonly api: { readonly pid: number; readonly graceSeconds: number };
}

/** Reads the addresses of the gateway from the environment. Throws when scripts/shipped.mjs did not start the specs. */
export function shipped(): Shipped {
  return {
    ...callerOf(given('URL'), given('TOKEN'), given('SECRET')),
    workerUrl: given('WORKER_URL'),
    metricsUrls: [given('METRICS_URL'), given('WORKER_METRICS_URL')],
    grpc: given('GRPC'),
    adminPassword: given('ADMIN_PASSWORD'),
    api: { pid: Number(given('API_PID')), graceSeconds: Number(given('API_GRACE_SECONDS')) },
  };
}

function given(name: string): string {
  const value = process.env[`RIALTO_TEST_${name}`];
  if (!value) throw new Error(`RIALTO_TEST_${name} is not set: start these specs with \`npm run test:shipped\``);
  return value;
}
