import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Subject } from '../../protocol/a2e/errors.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';

const maxText = 2_048;

/** Connected agent that can receive pushes about changes. */
export interface ListeningAgent {
  /**
   * Subscribes the agent to the changes of a resource. Throws `rate_limited` beyond the limit of resources for one
   * agent.
   */
  subscribe(server: RegisteredServer, uri: string): Promise<void>;
  /** Ends a subscription; does nothing when there is none. */
  unsubscribe(server: RegisteredServer, uri: string): void;
}

/** Message with its context, for a handler. */
export interface A2eCall {
  readonly ctx: CallContext;
  readonly payload: JsonObject;
  /** Connected agent; absent for a message by POST. */
  readonly agent?: ListeningAgent;
}

/** Answers messages of one type: returns the payload of the reply, or throws. */
export interface A2eHandler {
  /** Kind of object that a `not_found` error refers to. */
  readonly subject: Subject;
  answer(call: A2eCall): Promise<JsonObject>;
}

/** Set of message types. If several plugins know a type, the one with the highest priority answers. */
export interface A2ePlugin {
  readonly name: string;
  readonly priority: number;
  readonly handlers: ReadonlyMap<string, A2eHandler>;
}

/** Returns a text member. Throws `invalid_params` when it is missing or not a valid text. */
export function requireText(payload: JsonObject, member: string): string {
  const text = optionalText(payload, member);
  if (text === undefined) throw invalidMember(member, 'is required');
  return text;
}

/** Returns a text member; null and an empty text count as absent. Throws the errors of `requireText`. */
export function optionalText(payload: JsonObject, member: string): string | undefined {
  const value = payload[member] ?? undefined;
  if (value === undefined || value === '') return undefined;
  if (typeof value === 'string' && value.length <= maxText && !value.includes('\0')) return value;
  throw invalidMember(member, `must be a text of 1 to ${maxText} characters without NUL`);
}

/** Returns an object member. Throws `invalid_params` for other values. */
export function optionalObject(payload: JsonObject, member: string): JsonObject | undefined {
  const value: Json | undefined = payload[member] ?? undefined;
  if (value === undefined || isJsonObject(value)) return value;
  throw invalidMember(member, 'must be an object');
}

export function invalidMember(field: string, description: string): RialtoError {
  return new RialtoError('invalid_params', {
    message: `${field} ${description}`,
    violations: [{ field, description }],
  });
}
