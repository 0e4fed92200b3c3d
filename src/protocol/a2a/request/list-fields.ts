import { defined } from './defined.js';
import type { Fields } from './fields.js';
import { limits } from './limits.js';
import { idRule } from './message-fields.js';
import type { ListParams } from './operations.js';
import { isTaskState, stateNames, unknownState, type TaskState } from '../states.js';

const emptyIsAbsent = { empty: 'absent' } as const;

/** Reads the filters and the page of ListTasks (v1.0 section 3.1.4). Empty texts do not filter, as in ProtoJSON. */
export function listFields(fields: Fields): ListParams {
  return defined({
    contextId: fields.text('contextId', { ...idRule, ...emptyIsAbsent }),
    status: statusField(fields),
    pageSize: fields.integer('pageSize', 1, limits.pageSize) ?? limits.defaultPageSize,
    pageToken: fields.text('pageToken', { max: limits.pageToken, ...emptyIsAbsent }),
    historyLength: fields.integer('historyLength', 0),
    statusTimestampAfter: fields.time('statusTimestampAfter'),
    includeArtifacts: fields.flag('includeArtifacts') ?? false,
  });
}

/**
 * Reads the page of a list of push configurations. Its size is not an `optional` field of the proto, so 0 means the
 * default size.
 */
export function pageFields(fields: Fields): { pageSize?: number; pageToken?: string } {
  return {
    pageSize: fields.integer('pageSize', 0, limits.pageSize) || undefined,
    pageToken: fields.text('pageToken', { max: limits.pageToken, ...emptyIsAbsent }),
  };
}

function statusField(fields: Fields): TaskState | undefined {
  const status = fields.enumName('status', stateNames);
  if (status === undefined || status === unknownState) return undefined; // the default of the proto: no filter
  if (isTaskState(status)) return status;
  return fields.refuse('status', 'must be a task state such as TASK_STATE_WORKING');
}
