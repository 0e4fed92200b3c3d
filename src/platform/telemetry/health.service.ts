export type HealthStatus = 'ok' | 'degraded' | 'down';

/** One dependency of this process. `degraded` keeps the process in service. */
export interface HealthCheck {
  readonly name: string;
  /**
   * Status when the check fails or does not answer in time: `down` by default, `degraded` for a dependency that the
   * process can work without.
   */
  readonly unanswered?: HealthStatus;
  run(): Promise<{ status: HealthStatus; detail?: string }>;
}

export interface Readiness {
  readonly status: HealthStatus;
  readonly checks: Record<string, { status: HealthStatus; detail?: string }>;
}

const budgetMs = 1_500;

/** Runs all checks at once, each within a time budget. The worst status is the status of the process. */
export class HealthService {
  private readonly checks: HealthCheck[];
  private draining = false;

  constructor(...checks: HealthCheck[]) {
    this.checks = checks;
  }

  add(check: HealthCheck): void {
    this.checks.push(check);
  }

  /** Makes the process "not ready" because it is about to stop. */
  drain(): void {
    this.draining = true;
  }

  async checkReadiness(): Promise<Readiness> {
    const answers = await Promise.all(
      this.checks.map(async (check) => [check.name, await withinBudget(check)] as const),
    );
    const checks = Object.fromEntries(answers);
    if (this.draining) checks.process = { status: 'down', detail: 'stopping' };
    const all = Object.values(checks).map(({ status }) => status);
    return { status: all.includes('down') ? 'down' : all.includes('degraded') ? 'degraded' : 'ok', checks };
  }
}

function withinBudget(check: HealthCheck): ReturnType<HealthCheck['run']> {
  const status = check.unanswered ?? 'down';
  const late = new Promise<{ status: HealthStatus; detail: string }>((resolve) =>
    setTimeout(resolve, budgetMs, { status, detail: 'no answer in time' }).unref(),
  );
  return Promise.race([check.run().catch(() => ({ status, detail: 'not reachable' })), late]);
}
