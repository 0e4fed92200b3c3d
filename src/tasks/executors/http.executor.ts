import { Inject, Injectable } from '@nestjs/common';
import { ZodError } from 'zod';
import { systemClock } from '../../kernel/clock.js';
import { RialtoError } from '../../kernel/errors.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import type { SafeResponse } from '../../platform/http/outbound/safe-fetch.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { parseLongJson } from '../../platform/turns.js';
import { containsUnstorable } from '../../protocol/jsonrpc.js';
import type { PublishedAgent } from '../../registry/published.types.js';
import { inlineEvents, type ExecutionEvent } from '../external/execution-events.js';
import { hasReached, isWokenEarly, remembering, turnOf } from '../external/execution-report.js';
import { silenceMs } from '../storage/execution-times.js';
import { ReportApplier } from '../external/report-applier.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';
import { WorkOrders } from '../external/work-orders.js';
import { HttpCalls } from './http-calls.js';

/**
 * Runs tasks at an HTTP service of the agent's operator, in any language. The service gets each message by a signed
 * POST, and reports in its answer or later at the executions endpoint. A turn that the service has received is never
 * sent again under another id.
 */
@Injectable()
export class HttpExecutor implements TaskExecutor {
  readonly kind = 'http';
  readonly pure = false;
  /** Agents of which the log has said that their services answer without an event. */
  private readonly silent = new WeakSet<PublishedAgent>();

  constructor(
    private readonly calls: HttpCalls,
    private readonly reports: ReportApplier,
    private readonly orders: WorkOrders,
    private readonly publicUrl: PublicUrl,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    const { task } = run;
    if (hasReached(task)) {
      if (!isWokenEarly(task, systemClock.now())) throw new RialtoError('remote_timeout', { message: silenceText });
      // The whole time, because the service may have reported since.
      yield { deferred: { lookAgainMs: silenceMs } };
      return;
    }
    if (task.state === 'TASK_STATE_SUBMITTED') yield { status: { state: 'TASK_STATE_WORKING' } };
    const reached = turnOf(task);
    const id = `${task.id}-${reached}`;
    const order = await this.orderOf(run);
    const answer = await this.calls.deliver(run.agent, {
      id,
      body: JSON.stringify(order),
      headers: order.headers,
      signal: unlessLost(run.signal),
      givenUp: run.signal,
    });
    // Stored after the memo, the change to working would make the task due at once: the service would count as silent.
    await run.stored();
    // Reports go to the row, not through this run: the service may already have reported at the executions endpoint,
    // and then the row is newer than this run's task.
    const events = await eventsIn(answer, id);
    if (events.length === 0 && answer.body.length > 0) this.noteSilence(run);
    await this.reports.applyEvents(task, events, { reached });
    // In one commit: a task with this memo that is due at once would be treated as one that was silent for the whole
    // time.
    yield { memo: remembering(task, reached, systemClock.now()), deferred: { lookAgainMs: silenceMs } };
  }

  /** Tells the service once that the task is canceled. */
  async abandon({ agent, task }: Omit<TaskRun, 'signal' | 'earlier' | 'stored'>): Promise<void> {
    const body = JSON.stringify({ type: 'cancel', taskId: task.id, agent: agent.name });
    await this.calls.post(agent, { id: `${task.id}-cancel`, body, headers: this.orders.headersOf(agent, task) });
  }

  /** An answer without an event may be meant as a confirmation, or as the result in a form that has no meaning here. */
  private noteSilence({ agent, task }: TaskRun): void {
    if (this.silent.has(agent)) return;
    this.silent.add(agent);
    const text = 'a service answered with a body that has no event; its task waits for reports at the callbackUrl';
    this.log.warn({ agent: agent.name, taskId: task.id }, text);
  }

  private async orderOf({ ctx, agent, task, message, ...run }: TaskRun) {
    const { principal } = ctx;
    return {
      ...this.orders.orderFor({ agent, task, message, principal, earlier: await run.earlier() }),
      agent: agent.name,
      callbackUrl: `${this.publicUrl.base}/api/executions/${task.id}/events`,
    };
  }
}

const silenceText =
  `the service sent no report for ${silenceMs / 60_000} minutes, ` +
  'neither in its answer to the message nor at the callbackUrl';

/**
 * A signal that ignores the loss of the lease. A report of the service that is still being called may have ended the
 * run's lease; the answer of the service still counts.
 */
function unlessLost(signal: AbortSignal): AbortSignal {
  const ending = new AbortController();
  const follow = (): void => {
    if (signal.reason !== 'lost') ending.abort();
  };
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return ending.signal;
}

/**
 * The events in an answer. An answer that is not JSON only confirms that the message was received. Throws
 * `remote_invalid_response`.
 */
async function eventsIn({ headers, body }: SafeResponse, callId: string): Promise<ExecutionEvent[]> {
  if (!/^application\/json\b/i.test(headers['content-type'] ?? '') || body.length === 0) return [];
  const parsed = await parseLongJson(body.toString('utf8'));
  if (!parsed.ok || containsUnstorable(parsed.value)) throw badAnswer('is not JSON that can be stored');
  try {
    return inlineEvents(parsed.value, callId);
  } catch (error) {
    if (!(error instanceof ZodError)) throw error;
    const [issue] = error.issues;
    throw badAnswer(`has an invalid event: ${issue!.path.join('.')}: ${issue!.message}`);
  }
}

function badAnswer(what: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message: `the answer of the service ${what}` });
}
