import type { Violation } from '../../../kernel/errors.js';
import type { JsonObject } from '../../../kernel/json.js';
import type { A2aVersion, Message } from '../model.js';
import type { TaskState } from '../states.js';

/*
 * The requests of callers, the same for every binding, version and older spelling: the operations of v1.0 (section 3.1)
 * with checked parameters. Doors decode to these, and services use only these.
 */

/** A target for updates of a task (v1.0 section 4.3). `credentials` and `token` are secrets. */
export interface PushConfig {
  id?: string;
  taskId?: string;
  url: string;
  token?: string;
  authentication?: { scheme: string; credentials?: string };
}

/**
 * The format of a push body: that of the dialect of the caller that created the configuration, or the one it asked for.
 */
export type PushFormat = 'v1' | 'v0.3' | 'task' | 'reyn';

export interface SendParams {
  message: Message;
  acceptedOutputModes?: string[];
  pushConfig?: PushConfig & { format: PushFormat };
  /** The answer has at most this many of the newest messages; absent: all messages. */
  historyLength?: number;
  /** Answer as soon as the task is stored (v1.0 section 3.2.2). */
  returnImmediately?: boolean;
  metadata?: JsonObject;
  /** Up to 255 characters, unique per org, caller and agent. */
  idempotencyKey?: string;
  /** The caller selected one of the choices that a question offers (RY-29). */
  choiceId?: string;
  /** `working` is the state in the answer to `async: true`, no matter what the real state is (AN-12). */
  answerAs?: 'working';
  /** The request uses Reyn's spelling, so the answer has Reyn's extra members (RY-16, RY-29). */
  reyn?: { isAnswer: boolean };
}

export interface ListParams {
  contextId?: string;
  status?: TaskState;
  /** 1 to 100. */
  pageSize: number;
  pageToken?: string;
  historyLength?: number;
  /** Milliseconds since the epoch: selects tasks with a status from this time or later. */
  statusTimestampAfter?: number;
  includeArtifacts: boolean;
}

export type Operation =
  | { readonly name: 'SendMessage' | 'SendStreamingMessage'; readonly params: SendParams }
  | { readonly name: 'GetTask'; readonly params: { id: string; historyLength?: number } }
  | { readonly name: 'ListTasks'; readonly params: ListParams }
  | { readonly name: 'CancelTask'; readonly params: { id: string; metadata?: JsonObject } }
  /** `endedToo`: an ended task is answered with its snapshot instead of an error (`tasks/subscribe`). */
  | { readonly name: 'SubscribeToTask'; readonly params: { id: string; endedToo?: boolean } }
  | {
      readonly name: 'CreateTaskPushNotificationConfig';
      readonly params: PushConfig & { taskId: string; format: PushFormat };
    }
  | {
      readonly name: 'GetTaskPushNotificationConfig' | 'DeleteTaskPushNotificationConfig';
      /** An absent id means the only configuration (v0.3). */
      readonly params: { taskId: string; id?: string };
    }
  | {
      readonly name: 'ListTaskPushNotificationConfigs';
      readonly params: { taskId: string; pageSize?: number; pageToken?: string };
    }
  | { readonly name: 'GetExtendedAgentCard'; readonly params: Record<string, never> };

export type OperationName = Operation['name'];

/** An operation, and facts about its request that are not part of the operation. */
export interface DecodedOperation {
  readonly operation: Operation;
  readonly version: A2aVersion;
  /** The opaque routing key that v1.0 clients copy from the card (section 8.3.2). */
  readonly tenant?: string;
  /** The answer shows a rejected task as failed (RI-36). */
  readonly rejectedFails?: true;
}

export type Decoded =
  | ({ readonly ok: true } & DecodedOperation)
  | {
      readonly ok: false;
      readonly code: 'method_not_found' | 'invalid_params';
      readonly message: string;
      readonly violations?: Violation[];
    };

/** One page of tasks (v1.0 section 3.1.4). */
export interface TaskPage<T> {
  tasks: T[];
  /** Empty on the last page. */
  nextPageToken: string;
  pageSize: number;
  totalSize: number;
}
