import type { CallContext } from '../kernel/call-context.js';
import type { Act } from '../kernel/verb-bus.js';
import type { BridgeReply } from '../protocol/a2a/remote/bridge-call.js';
import type { TaskId } from '../kernel/ids.js';
import type { SkillCall } from './remote-call.types.js';
import type { RemoteTask, TaskReply, WaitLimits } from './transports/remote-wait.js';

export type { RemoteTask, TaskReply, WaitLimits } from './transports/remote-wait.js';
export { waitUntilSettled } from './transports/remote-wait.js';

/** What a call's task is going to be, before there is one. */
export interface Admission {
  readonly taskId: TaskId;
  /** Where the agent may push what becomes of its task. */
  readonly pushUrl?: string;
}

/**
 * Keeps the task of a call that its agent did not end at once, whatever becomes of the caller and of this process. Resolves with the
 * end of the task, or, when the caller's patience is over, with a task of ours that goes on: then the act is handed over.
 * Rejects with what the remote's failure means, and with `canceled`.
 */
export interface RemoteTaskKeeper {
  /**
   * Before anything is sent: whether those whom the call names may be told, and whether its org may have one more task. Throws
   * `denied`, `url_not_allowed`, `invalid_params`, `rate_limited`, `unavailable`.
   */
  admit(ctx: CallContext, call: SkillCall): Promise<Admission>;
  keep(
    act: Act,
    call: SkillCall & Admission,
    first: TaskReply,
    remote: RemoteTask,
    limits: WaitLimits,
  ): Promise<BridgeReply>;
}
