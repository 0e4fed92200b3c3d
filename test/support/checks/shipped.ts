import { callerOf, type Caller } from '../gateway/caller.js';

/** The gateway that scripts/shipped.mjs has started: api and worker, as separate processes of the tree that the image holds. */
export interface Shipped extends Caller {
  readonly workerUrl: string;
  readonly metricsUrls: readonly [api: string, worker: string];
  /** Host and port of the gRPC services. */
  readonly grpc: string;
  readonly adminPassword: string;
  readonly api: { readonly pid: number; readonly graceSeconds: number };
}

/** Reads where it runs from the environment. Throws when the specs were not started by the script. */
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
