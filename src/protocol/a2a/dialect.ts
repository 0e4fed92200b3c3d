import type { Json, JsonObject } from '../../kernel/json.js';
import type { A2aVersion, Message, StreamResponse, Task } from './model.js';
import type { Decoded, Operation, OperationName, PushConfig, TaskPage } from './request/operations.js';

/*
 * A dialect is the form of one A2A version in JSON-RPC: pure functions that translate between its words and the
 * canonical ones. Services use operations and canonical values. Doors choose a dialect (negotiate.ts) and add the
 * envelope (../jsonrpc.ts) and the frames (../sse.ts).
 */

/**
 * The answer to a sent message (v1.0 section 3.1.1). `answered` and `reason` are present only when the message answered
 * a question (RY-29).
 */
export type SendValue = ({ task: Task } | { message: Message }) & { answered?: boolean; reason?: string };

/** One page of push configurations (v1.0 section 3.1.9); the token is absent or empty on the last page. */
export interface PushConfigPage {
  configs: PushConfig[];
  nextPageToken?: string;
}

/** The canonical result of each operation. The two streaming operations have no result, only events (`encodeEvent`). */
export interface OperationValues {
  SendMessage: SendValue;
  SendStreamingMessage: StreamResponse;
  GetTask: Task;
  ListTasks: TaskPage<Task>;
  CancelTask: Task;
  SubscribeToTask: StreamResponse;
  CreateTaskPushNotificationConfig: PushConfig;
  GetTaskPushNotificationConfig: PushConfig;
  ListTaskPushNotificationConfigs: PushConfigPage;
  DeleteTaskPushNotificationConfig: undefined;
  /** An encoded card; it passes unchanged. */
  GetExtendedAgentCard: JsonObject;
}

/** The operation with a given name, for functions with a value type that depends on the name. */
export type OperationNamed<Name extends OperationName> = Operation & { readonly name: Name };

export interface DecodeOptions {
  /**
   * Creates the id of a message that has none, which only the older spellings allow. Without it such a message is
   * refused.
   */
  readonly newId?: () => string;
}

export interface EncodeOptions {
  /** The name of the published agent, a member of Reyn's answers (RY-16). */
  readonly agentName?: string;
}

export interface Dialect {
  readonly version: A2aVersion;
  /** Decodes a JSON-RPC method and its params to an operation. Never throws. */
  decode(method: string, params: unknown, options?: DecodeOptions): Decoded;
  /**
   * True for a method if its clients read the answer, errors included, only as an event stream. Absent when the clients
   * of all methods read both forms.
   */
  readsStreamOnly?(method: string): boolean;
  /** Encodes the JSON-RPC result of an operation. */
  encodeResult<Name extends OperationName>(
    operation: OperationNamed<Name>,
    value: OperationValues[Name],
    options?: EncodeOptions,
  ): Json;
  /** Encodes an event as the `result` of one frame of a JSON-RPC stream; it is also the body of a push notification. */
  encodeEvent(event: StreamResponse): Json;
}
