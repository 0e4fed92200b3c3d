import { setTimeout as sleep } from 'node:timers/promises';
import { Injectable } from '@nestjs/common';
import { A2AClientService } from '../../a2a-client/a2a-client.service.js';
import type { MessageCall, RemoteCall } from '../../a2a-client/remote-call.types.js';
import { RialtoError } from '../../kernel/errors.js';
import type { ActId } from '../../kernel/ids.js';
import type { StreamResponse } from '../../protocol/a2a/model.js';
import type { TaskRun } from '../../tasks/executor.port.js';
import { PushTokens } from '../push/push-tokens.js';
import { ContinuationStore } from '../storage/continuation.store.js';
import { ContinuationUpdates } from './continuation-updates.js';
import { outward, type RemoteMemo } from './outward-message.js';

/** Pause before the gateway asks an agent with a broken connection what became of a message. */
const beforeRepeatMs = 500;

/** A message to a registered agent; all attempts to send it have the same key. */
type Outgoing = Pick<MessageCall, 'params' | 'pushUrl'> & { readonly key: string };

interface Sending {
  /** True when the message answers a known remote task, which can be polled. */
  readonly isAnswer: boolean;
  /** Makes the id of the act of an attempt. */
  readonly newActId: () => ActId;
}

/** Sends the messages of tasks to the registered agents that do their work, and cancels the remote tasks. */
@Injectable()
export class RemoteMessages {
  constructor(
    private readonly client: A2AClientService,
    private readonly store: ContinuationStore,
    private readonly pushes: PushTokens,
    private readonly updates: ContinuationUpdates,
  ) {}

  /** Builds the message to the remote from the message of the caller. */
  async compose(run: TaskRun, call: RemoteCall, memo: RemoteMemo | undefined): Promise<Outgoing> {
    const references = await this.store.remoteIdsOf(run.agent.id, run.message.referenceTaskIds ?? []);
    const message = outward(run, call.skillId, memo, references);
    return {
      params: { message, configuration: { returnImmediately: true } },
      pushUrl: this.pushes.urlFor(call.agent, { taskId: run.task.id, orgId: run.task.orgId }),
      key: message.messageId,
    };
  }

  /**
   * Sends a message and yields the events of the remote. When it is unknown whether the message arrived, looks up its
   * task, else sends the message once more with the same id. Throws `outcome_unknown` when that attempt fails, too.
   */
  async *send(
    run: TaskRun,
    call: RemoteCall,
    outgoing: Outgoing,
    { isAnswer, newActId }: Sending,
  ): AsyncGenerator<StreamResponse, void> {
    let hasStarted = false;
    try {
      for await (const event of this.sendOnce(run, { ...call, ...outgoing, id: newActId() })) {
        hasStarted = true;
        yield event;
      }
      return;
    } catch (error) {
      if (hasStarted || isAnswer || run.signal.aborted || !mayHaveArrived(error)) throw error;
    }
    await sleep(beforeRepeatMs, undefined, { signal: run.signal }).catch(() => undefined);
    if (run.signal.aborted) throw new RialtoError('canceled');
    const lookup = { ...call, messageId: outgoing.key, timeoutMs: this.updates.pollTimeoutMs };
    const task = await this.client.findTask(run.ctx, lookup).catch(() => undefined);
    if (task) {
      yield { task };
      return;
    }
    hasStarted = false;
    try {
      for await (const event of this.sendOnce(run, { ...call, ...outgoing, id: newActId() })) {
        hasStarted = true;
        yield event;
      }
    } catch (error) {
      if (hasStarted || run.signal.aborted) throw error;
      throw outcomeUnknown(call, RialtoError.from(error));
    }
  }

  /** Cancels the remote task of a task that was canceled here, and ends its continuation. */
  async cancel({ ctx, task }: Pick<TaskRun, 'ctx' | 'task'>, call: RemoteCall, remoteTaskId: string): Promise<void> {
    await this.client.cancel(ctx, { ...call, taskId: remoteTaskId });
    await this.store.close(task.id, remoteTaskId, 'completed');
  }

  /** Sends the message with a stream where the agent supports one; the stream may last as long as the work. */
  private async *sendOnce(run: TaskRun, call: MessageCall): AsyncGenerator<StreamResponse, void> {
    const { maxRemoteWorkMs: timeoutMs } = this.updates.budget;
    if (call.agent.card?.capabilities.streaming === true) yield* this.client.stream(run.ctx, { ...call, timeoutMs });
    else yield await this.client.send(run.ctx, call);
  }
}

/** True when it is unknown whether the remote has the message. */
function mayHaveArrived(error: unknown): boolean {
  const { code, data } = RialtoError.from(error);
  return code === 'remote_timeout' || data?.ambiguous === true;
}

function outcomeUnknown({ agent }: RemoteCall, last: RialtoError): RialtoError {
  const who = `the agent "${agent.row.slug}"`;
  return new RialtoError('outcome_unknown', {
    message:
      `it is unknown whether ${who} received the message (last error: ${last.message}); ` +
      'check at the agent before you send it again',
    data: { ambiguous: true },
    cause: last,
  });
}
