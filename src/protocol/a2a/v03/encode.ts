import type { Json, JsonObject } from '../../../kernel/json.js';
import { defined } from '../request/defined.js';
import type { EncodeOptions, OperationNamed, OperationValues, SendValue } from '../dialect.js';
import type { Task } from '../model.js';
import type { OperationName, PushConfig, SendParams } from '../request/operations.js';
import { runFacts } from '../run-facts.js';
import { encodeEvent, encodeMessage, encodeTask } from './objects.js';

type Encoder<Name extends OperationName> = (
  value: OperationValues[Name],
  operation: OperationNamed<Name>,
  options: EncodeOptions,
) => Json;

const results: { readonly [Name in OperationName]: Encoder<Name> } = {
  SendMessage: (value, { params }, options) => encodeSend(value, params, options),
  SendStreamingMessage: encodeEvent,
  GetTask: encodeTask,
  // Only REST has it; see proto.ts.
  ListTasks: ({ tasks, nextPageToken, pageSize, totalSize }) => ({
    tasks: tasks.map(encodeTask),
    nextPageToken,
    pageSize,
    totalSize,
  }),
  CancelTask: encodeTask,
  SubscribeToTask: encodeEvent,
  CreateTaskPushNotificationConfig: encodeTaskPushConfig,
  GetTaskPushNotificationConfig: encodeTaskPushConfig,
  ListTaskPushNotificationConfigs: ({ configs }) => configs.map(encodeTaskPushConfig),
  DeleteTaskPushNotificationConfig: () => null,
  GetExtendedAgentCard: (card) => card,
};

/**
 * Encodes the JSON-RPC result of an operation in v0.3 (section 7): bare objects with `kind`. A list is an array, a
 * deletion is null.
 */
export function encodeResult<Name extends OperationName>(
  operation: OperationNamed<Name>,
  value: OperationValues[Name],
  options: EncodeOptions = {},
): Json {
  return results[operation.name](value, operation, options);
}

/**
 * Encodes a Task or a Message. For a request with `async: true` the task is always `working` (AN-12). For a request in
 * Reyn's words the answer also has the facts of the run: its members are next to those of the Task, `status` is the
 * word of the run, the Task itself is under `task` (RY-16), and the answer says whether the agent accepted the caller's
 * answer (RY-29, RY-30).
 */
function encodeSend(
  value: SendValue,
  { reyn, answerAs, message }: SendParams,
  { agentName }: EncodeOptions,
): JsonObject {
  const answer = 'task' in value ? encodeTask(value.task) : encodeMessage(value.message);
  if (answerAs && 'task' in value) answer.status = statusOf(answerAs, value.task);
  if (!reyn) return answer;
  return {
    ...answer,
    ...('task' in value && { ...runMembers(value), task: { ...answer } }),
    ...(agentName !== undefined && { agent_name: agentName }),
    ...(reyn.isAnswer && answerMembers(value, message.taskId)),
  };
}

function statusOf(state: string, { status: { timestamp } }: Task): JsonObject {
  return { state, ...(timestamp !== undefined && { timestamp }) };
}

// `kind` is a member of the Task.
function runMembers({ task }: Extract<SendValue, { task: unknown }>): JsonObject {
  const { kind: _kind, ...facts } = runFacts(task);
  return facts as unknown as JsonObject;
}

function answerMembers(value: SendValue, taskId: string | undefined): JsonObject {
  const { answered = true, reason } = value;
  return defined({ task_id: 'task' in value ? value.task.id : taskId, answered, reason }) as JsonObject;
}

/** Encodes a TaskPushNotificationConfig (v0.3 section 6.10): nested, with a list of schemes. */
function encodeTaskPushConfig({ taskId, ...config }: PushConfig): JsonObject {
  return defined({ taskId, pushNotificationConfig: encodePushConfig(config) }) as JsonObject;
}

export function encodePushConfig({ id, url, token, authentication }: Omit<PushConfig, 'taskId'>): JsonObject {
  const { scheme, credentials } = authentication ?? {};
  const older = scheme === undefined ? undefined : defined({ schemes: [scheme], credentials });
  return defined({ id, url, token, authentication: older }) as JsonObject;
}
