import { Injectable } from '@nestjs/common';
import { ZodError } from 'zod';
import { RialtoError } from '../../kernel/errors.js';
import { PublicUrl } from '../../platform/http/public-url.js';
import type { SafeResponse } from '../../platform/http/outbound/safe-fetch.js';
import { containsUnstorable, parseJson } from '../../protocol/jsonrpc.js';
import { inlineEvents, type ExecutionEvent } from '../external/execution-events.js';
import { hasReached, remembering, turnOf } from '../external/execution-report.js';
import { silenceMs } from '../storage/execution-times.js';
import { Executions } from '../external/executions.js';
import type { TaskExecutor, TaskRun, TaskUpdate } from '../executor.port.js';
import { WorkOrders } from '../external/work-orders.js';
import { HttpCalls } from './http-calls.js';

/**
 * The work done by a service of one's own, in any language: it gets each message by a signed POST, and says what became of it in
 * its answer, or later at the door of executions. A turn that it was given is never given again by another id.
 */
@Injectable()
export class HttpExecutor implements TaskExecutor {
  readonly kind = 'http';
  readonly pure = false;

  constructor(
    private readonly calls: HttpCalls,
    private readonly executions: Executions,
    private readonly orders: WorkOrders,
    private readonly publicUrl: PublicUrl,
  ) {}

  async *execute(run: TaskRun): AsyncGenerator<TaskUpdate, void> {
    const { task } = run;
    if (hasReached(task)) throw new RialtoError('remote_timeout', { message: silence });
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
    // Past this run, for the service may have reported at the door meanwhile: then the row is ahead of what this run knows.
    await this.executions.take(task, eventsIn(answer, id), reached);
    // In one commit: a task that remembers this and is due at once would be taken for one that was silent all the while.
    yield { memo: remembering(task, { reached }), deferred: { lookAgainMs: silenceMs } };
  }

  /** Tells the service that nobody waits any more, once. */
  async abandon({ agent, task }: Omit<TaskRun, 'signal' | 'earlier'>): Promise<void> {
    const body = JSON.stringify({ type: 'cancel', taskId: task.id, agent: agent.name });
    await this.calls.post(agent, { id: `${task.id}-cancel`, body, headers: this.orders.headersOf(agent, task) });
  }

  private async orderOf({ ctx, agent, task, message, ...run }: TaskRun) {
    const { principal } = ctx;
    return {
      ...this.orders.of({ agent, task, message, principal, earlier: await run.earlier() }),
      agent: agent.name,
      callbackUrl: `${this.publicUrl.base}/api/executions/${task.id}/events`,
    };
  }
}

const silence = `the service gave no sign of life for ${silenceMs / 60_000} minutes`;

/** A run that was lost may have been lost to a report of the service it is still talking to: the answer counts all the same. */
function unlessLost(signal: AbortSignal): AbortSignal {
  const ending = new AbortController();
  const follow = (): void => {
    if (signal.reason !== 'lost') ending.abort();
  };
  if (signal.aborted) follow();
  else signal.addEventListener('abort', follow, { once: true });
  return ending.signal;
}

/** The events in an answer; an answer that is no JSON only says that the message was taken. Throws `remote_invalid_response`. */
function eventsIn({ headers, body }: SafeResponse, callId: string): ExecutionEvent[] {
  if (!/^application\/json\b/i.test(headers['content-type'] ?? '') || body.length === 0) return [];
  const parsed = parseJson(body.toString('utf8'));
  if (!parsed.ok || containsUnstorable(parsed.value)) throw badAnswer('is not JSON that can be stored');
  try {
    return inlineEvents(parsed.value, callId);
  } catch (error) {
    if (!(error instanceof ZodError)) throw error;
    const [issue] = error.issues;
    throw badAnswer(`has a wrong event: ${issue!.path.join('.')}: ${issue!.message}`);
  }
}

function badAnswer(what: string): RialtoError {
  return new RialtoError('remote_invalid_response', { message: `the answer of the service ${what}` });
}
