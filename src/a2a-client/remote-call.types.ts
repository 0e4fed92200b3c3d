import type { RialtoError } from '../kernel/errors.js';
import type { ActId } from '../kernel/ids.js';
import type { JsonObject } from '../kernel/json.js';
import type { MessageFacts } from '../kernel/trust.js';
import type { DispatchFacts } from '../kernel/verbs.js';
import type { RegisteredAgent } from '../registry/registry.types.js';
import type { Thread } from './dispatch.types.js';
import type { SendParams } from './transports/sdk.transport.js';

/** The agent and skill of a call, its caller, and its time limit. */
export interface RemoteCall {
  readonly agent: RegisteredAgent;
  readonly skillId: string;
  /** Canonical name of the skill. */
  readonly verb: string;
  /** Name of the tool that the caller used; absent when the call is not a tool call. */
  readonly calledAs?: string;
  readonly sessionId: string;
  /** Milliseconds from now to the last byte, including the policy decision. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Id of the act, when its caller must know it before the call. */
  readonly id?: ActId;
  readonly dispatch?: DispatchFacts;
  /** Arguments that policy rules see, at the call and at each later poll of its task. */
  readonly args?: JsonObject;
  /** Facts for policies about the message, when the call sends one. */
  readonly message?: MessageFacts;
  /** The whole message, without the id that each sending has of its own; an approval of the call is bound to it. */
  readonly content?: JsonObject;
  /** URLs that get the result. An approval is bound to them. */
  readonly receivers?: JsonObject;
  /** The error of a call that no policy and no approval can permit. */
  readonly refusal?: RialtoError;
  /** The same for every attempt of this call; one approval permits all of them. */
  readonly attemptKey?: string;
}

/** A message as it is sent. */
export interface MessageCall extends RemoteCall {
  readonly params: SendParams;
  /** The same for every try of this message; sent as `Idempotency-Key`. */
  readonly key?: string;
  /** URL to which the agent may push updates of its task. */
  readonly pushUrl?: string;
}

export interface SkillCall extends RemoteCall {
  readonly args: JsonObject;
  /** URL that gets the updates of the task, if there is one. */
  readonly webhookUrl?: string;
  /** Conversation that gets the answer, when the caller did not get it. */
  readonly thread?: Thread;
}
