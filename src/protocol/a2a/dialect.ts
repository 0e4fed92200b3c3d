import type { Json, JsonObject } from '../../kernel/json.js';
import type { A2aVersion, Message, StreamResponse, Task } from './model.js';
import type { Decoded, Operation, OperationName, PushConfig, TaskPage } from './request/operations.js';

/*
 * A dialect is how one version of A2A is written in JSON-RPC: pure functions between its words and the canonical ones. Services see
 * operations and canonical values; doors choose a dialect (negotiate.ts) and add the envelope (../jsonrpc.ts) and the frames (../sse.ts).
 */

/** What a sent message was answered with (v1.0 section 3.1.1); `answered` and `reason` only when it answered a question (RY-29). */
export type SendValue = ({ task: Task } | { message: Message }) & { answered?: boolean; reason?: string };

/** One page of push configurations (v1.0 section 3.1.9); the token is absent or empty at the end. */
export interface PushConfigPage {
  configs: PushConfig[];
  nextPageToken?: string;
}

/** What each operation yields, canonical. The two streaming ones have no result but events (`encodeEvent`). */
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
  /** A card that is encoded already, passed through. */
  GetExtendedAgentCard: JsonObject;
}

/** The operation of one name, for functions that tie a name to its value. */
export type OperationNamed<Name extends OperationName> = Operation & { readonly name: Name };

export interface DecodeOptions {
  /** Makes the id of a message that has none; only the older spellings allow that. Without it such a message is refused. */
  readonly newId?: () => string;
}

export interface EncodeOptions {
  /** The name of the published agent, part of Reyn's answers (RY-16). */
  readonly agentName?: string;
}

export interface Dialect {
  readonly version: A2aVersion;
  /** A JSON-RPC method and its params to an operation. Never throws. */
  decode(method: string, params: unknown, options?: DecodeOptions): Decoded;
  /** True for a method whose clients read its answer as an event stream alone, errors too; absent where they read both. */
  readsStreamOnly?(method: string): boolean;
  /** The JSON-RPC result of an operation. */
  encodeResult<Name extends OperationName>(
    operation: OperationNamed<Name>,
    value: OperationValues[Name],
    options?: EncodeOptions,
  ): Json;
  /** The `result` of one frame of a JSON-RPC stream, and the body of a push notification. */
  encodeEvent(event: StreamResponse): Json;
}
