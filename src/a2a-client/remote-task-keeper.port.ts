import type { CallContext } from '../kernel/call-context.js';
import type { Act } from '../kernel/verb-bus.js';
import type { BridgeReply } from '../protocol/a2a/remote/bridge-call.js';
import type { TaskId } from '../kernel/ids.js';
import type { SkillCall } from './remote-call.types.js';
import type { RemoteTask, TaskReply, WaitLimits } from './transports/remote-wait.js';

export type { RemoteTask, TaskReply, WaitLimits } from './transports/remote-wait.js';
export { waitUntilSettled } from './transports/remote-wait.js';

/** Ids prepared for the task of a call, before the task exists. */
export interface Admission {
  readonly taskId: TaskId;
  /** URL to which the agent may push updates of its task. */
  readonly pushUrl?: string;
}

/**
 * Stores the task of a call that its agent did not end at once, so that it outlives the caller and this process.
 * Resolves with the end of the task. When the wait of the caller times out first, it resolves with a task of this
 * gateway that continues, and the act is handed over. Rejects with the meaning of the remote failure, or with
 * `canceled`.
 */
export interface RemoteTaskKeeper {
  /**
   * Checks, before anything is sent, that the gateway may notify the receivers that the call names, and that the org
   * may have one more task. Throws `denied`, `url_not_allowed`, `invalid_params`, `rate_limited`, `unavailable`.
   */
  admit(ctx: CallContext, call: SkillCall): Promise<Admission>;
  keepTask(
    act: Act,
    call: SkillCall & Admission,
    first: TaskReply,
    remote: RemoteTask,
    limits: WaitLimits,
  ): Promise<BridgeReply>;
}
