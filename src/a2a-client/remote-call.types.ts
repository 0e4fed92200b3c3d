import type { ActId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import type { DispatchFacts } from '../kernel/verb-bus.js';
import type { RegisteredAgent } from '../registry/registry.types.js';
import type { Thread } from './dispatch.types.js';
import type { SendParams } from './transports/sdk.transport.js';

/** Who is asked on whose behalf, and how long it may take. */
export interface RemoteCall {
  readonly agent: RegisteredAgent;
  readonly skillId: string;
  /** The canonical name of the skill. */
  readonly verb: string;
  /** The name of the tool that the caller used; absent for what is no call of a tool. */
  readonly calledAs?: string;
  readonly sessionId: string;
  /** From now to the last byte, the decision included. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** The id of the act, where its caller has to know it beforehand. */
  readonly id?: ActId;
  readonly dispatch?: DispatchFacts;
  /** The arguments that rules see, at the call and at each later look at its task. */
  readonly args?: JsonObject;
}

/** A message as it is sent. */
export interface MessageCall extends RemoteCall {
  readonly params: SendParams;
  /** The same for every try of this message; goes out as `Idempotency-Key`. */
  readonly key?: string;
  /** Where the agent may push what becomes of its task. */
  readonly pushUrl?: string;
}

export interface SkillCall extends RemoteCall {
  readonly args: JsonObject;
  /** Is told what becomes of its task, if there is one. */
  readonly webhookUrl?: string;
  /** Gets the answer, when the caller did not. */
  readonly thread?: Thread;
}
