import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Subject } from '../../protocol/a2e/errors.js';
import type { RegisteredServer } from '../../upstreams/registered-server.types.js';

const maxText = 2_048;

/** An agent that stays connected: it can be told of changes. */
export interface ListeningAgent {
  /** Has it told of the changes of a resource. Throws `rate_limited` beyond what one agent may watch. */
  subscribe(server: RegisteredServer, uri: string): Promise<void>;
  /** Ending what there is none of is no error. */
  unsubscribe(server: RegisteredServer, uri: string): void;
}

/** A message as its handler gets it. */
export interface A2eCall {
  readonly ctx: CallContext;
  readonly payload: JsonObject;
  /** Absent for one who sent a POST. */
  readonly agent?: ListeningAgent;
}

/** Answers messages of one type: with the payload of the reply, or a throw. */
export interface A2eHandler {
  /** What `not_found` is about. */
  readonly subject: Subject;
  answer(call: A2eCall): Promise<JsonObject>;
}

/** A set of message types. Of two that know a type the one with the higher priority answers. */
export interface A2ePlugin {
  readonly name: string;
  readonly priority: number;
  readonly handlers: ReadonlyMap<string, A2eHandler>;
}

/** Throws `invalid_params` for a member that is missing, or no text that names something. */
export function requireText(payload: JsonObject, member: string): string {
  const text = optionalText(payload, member);
  if (text === undefined) throw invalidMember(member, 'is required');
  return text;
}

/** Null is as good as absent. Throws as `requireText` does. */
export function optionalText(payload: JsonObject, member: string): string | undefined {
  const value = payload[member] ?? undefined;
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value !== '' && value.length <= maxText && !value.includes('\0')) return value;
  throw invalidMember(member, `is a text of 1 to ${maxText} characters`);
}

/** Throws `invalid_params` for what is no object. */
export function optionalObject(payload: JsonObject, member: string): JsonObject | undefined {
  const value: Json | undefined = payload[member] ?? undefined;
  if (value === undefined || isJsonObject(value)) return value;
  throw invalidMember(member, 'is an object');
}

export function invalidMember(field: string, description: string): RialtoError {
  return new RialtoError('invalid_params', {
    message: `${field} ${description}`,
    violations: [{ field, description }],
  });
}
