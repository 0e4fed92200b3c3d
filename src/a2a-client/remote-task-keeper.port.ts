import type { Act } from '../kernel/verb-bus.js';
import type { BridgeReply } from '../protocol/a2a/bridge-call.js';
import type { SkillCall } from './a2a-client.service.js';
import type { RemoteTask, TaskReply, WaitLimits } from './transports/remote-wait.js';

export type { RemoteTask, TaskReply, WaitLimits } from './transports/remote-wait.js';
export { waitUntilSettled } from './transports/remote-wait.js';

/**
 * Keeps the task of a call that its agent did not end at once, whatever becomes of the caller and of this process. Resolves with the
 * end of the task, or, when the caller's patience is over, with a task of ours that goes on: then the act is handed over.
 * Rejects with what the remote's failure means, and with `canceled`.
 */
export interface RemoteTaskKeeper {
  keep(act: Act, call: SkillCall, first: TaskReply, remote: RemoteTask, limits: WaitLimits): Promise<BridgeReply>;
}
