import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { isPart, partsMember } from './bridge-reply.js';
import { member, stringMember } from '../members.js';

/**
 * Says why a result is neither a task nor a message: the path of the first wrong member and its problem, without any
 * values.
 */
export function replyFault(result: Json): string {
  if (!isJsonObject(result)) return 'it is not an object';
  const [kind, task, message] = [member(result, 'kind'), member(result, 'task'), member(result, 'message')];
  if (kind === 'task') return taskFault(result, '');
  if (kind === 'message') return partsFault(result, '');
  if (kind !== undefined) return 'kind is neither "task" nor "message"';
  if (task !== undefined && message !== undefined) return 'it has both task and message';
  if (task !== undefined) return isJsonObject(task) ? taskFault(task, 'task.') : 'task is not an object';
  if (message !== undefined) return partsFault(message, 'message.');
  return member(result, 'status') === undefined ? 'it has no task, message, status or parts' : taskFault(result, '');
}

/**
 * Finds the fault of a task.
 *
 * @param at the path of the task, with a dot at its end.
 */
function taskFault(task: JsonObject, at: string): string {
  if (!stringMember(task, 'id')) return `${at}id is not a string`;
  const status = member(task, 'status');
  if (!isJsonObject(status)) return `${at}status is not an object`;
  if (stringMember(status, 'state') === undefined) return `${at}status.state is not a string`;
  const artifacts = member(task, 'artifacts') ?? [];
  if (!Array.isArray(artifacts)) return `${at}artifacts is not a list`;
  const faults = artifacts.map((artifact, index) => partsFault(artifact, `${at}artifacts[${index}].`));
  return faults.find((fault) => fault !== '') ?? partsFault(member(status, 'message') ?? {}, `${at}status.message.`);
}

/** Finds the fault in the parts of a message or an artifact; empty when there is none. */
function partsFault(owner: Json, at: string): string {
  if (!isJsonObject(owner)) return `${at.slice(0, -1)} is not an object`;
  const parts = partsMember(owner) ?? [];
  if (!Array.isArray(parts)) return `${at}parts is not a list`;
  const wrong = parts.findIndex((part) => !isPart(part));
  if (wrong === -1) return '';
  return `${at}parts[${wrong}] ${isJsonObject(parts[wrong]!) ? 'has no content of its kind' : 'is not an object'}`;
}
