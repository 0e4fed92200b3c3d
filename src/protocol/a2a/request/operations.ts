import type { Violation } from '../../../kernel/errors.js';
import type { JsonObject } from '../../../kernel/json.js';
import type { A2aVersion, Message } from '../model.js';
import type { TaskState } from '../states.js';

/*
 * What a caller asks for, whatever binding, version or older spelling it used: the operations of v1.0 (section 3.1) with their
 * parameters, checked. Doors decode to these and services know nothing else.
 */

/** Where updates of a task are posted (v1.0 section 4.3). `credentials` and `token` are secrets. */
export interface PushConfig {
  id?: string;
  taskId?: string;
  url: string;
  token?: string;
  authentication?: { scheme: string; credentials?: string };
}

/** The words a push body is written in: by what the registering caller spoke, or as it asked (requirements C16). */
export type PushFormat = 'v1' | 'v0.3' | 'task' | 'reyn';

export interface SendParams {
  message: Message;
  acceptedOutputModes?: string[];
  pushConfig?: PushConfig & { format: PushFormat };
  /** At most so many of the newest messages in the answer; absent: all. */
  historyLength?: number;
  /** Answer as soon as the task is stored (v1.0 section 3.2.2). */
  returnImmediately?: boolean;
  metadata?: JsonObject;
  /** Up to 255 characters, unique per org, caller and agent. */
  idempotencyKey?: string;
  /** The caller picked one of the offered choices of a question (RY-29). */
  choiceId?: string;
  /** `working` is what `async: true` answers, whatever the state is (AN-12). */
  answerAs?: 'working';
  /** Reyn's spelling was used, so its extra members are part of the answer (RY-16, RY-29). */
  reyn?: { isAnswer: boolean };
}

export interface ListParams {
  contextId?: string;
  status?: TaskState;
  /** 1 to 100. */
  pageSize: number;
  pageToken?: string;
  historyLength?: number;
  /** Milliseconds since the epoch; tasks whose status is of this time or later. */
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
      /** Without an id the only configuration is meant (v0.3). */
      readonly params: { taskId: string; id?: string };
    }
  | {
      readonly name: 'ListTaskPushNotificationConfigs';
      readonly params: { taskId: string; pageSize?: number; pageToken?: string };
    }
  | { readonly name: 'GetExtendedAgentCard'; readonly params: Record<string, never> };

export type OperationName = Operation['name'];

/** An operation with what belongs to its request and not to itself. */
export interface DecodedOperation {
  readonly operation: Operation;
  readonly version: A2aVersion;
  /** The opaque routing key that v1.0 clients copy from the card (section 8.3.2). */
  readonly tenant?: string;
  /** A rejected task is told as a failed one (RI-36). */
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
