import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import { isPart, partsMember } from './bridge-reply.js';
import { member, stringMember } from '../members.js';

/** Why a result is neither a task nor a message: the first member that is wrong, by its path. Nothing of its values is repeated. */
export function replyFault(result: Json): string {
  if (!isJsonObject(result)) return 'it is no object';
  const [kind, task, message] = [member(result, 'kind'), member(result, 'task'), member(result, 'message')];
  if (kind === 'task') return taskFault(result, '');
  if (kind === 'message') return partsFault(result, '');
  if (kind !== undefined) return 'kind is neither "task" nor "message"';
  if (task !== undefined && message !== undefined) return 'it has both task and message';
  if (task !== undefined) return isJsonObject(task) ? taskFault(task, 'task.') : 'task is no object';
  if (message !== undefined) return partsFault(message, 'message.');
  return member(result, 'status') === undefined ? 'it has no task, message, status or parts' : taskFault(result, '');
}

/** @param at the path of the task, with a dot at its end. */
function taskFault(task: JsonObject, at: string): string {
  if (!stringMember(task, 'id')) return `${at}id is no text`;
  const status = member(task, 'status');
  if (!isJsonObject(status)) return `${at}status is no object`;
  if (stringMember(status, 'state') === undefined) return `${at}status.state is no text`;
  const artifacts = member(task, 'artifacts') ?? [];
  if (!Array.isArray(artifacts)) return `${at}artifacts is no list`;
  const faults = artifacts.map((artifact, index) => partsFault(artifact, `${at}artifacts[${index}].`));
  return faults.find((fault) => fault !== '') ?? partsFault(member(status, 'message') ?? {}, `${at}status.message.`);
}

/** Empty where nothing is wrong. */
function partsFault(owner: Json, at: string): string {
  if (!isJsonObject(owner)) return `${at.slice(0, -1)} is no object`;
  const parts = partsMember(owner) ?? [];
  if (!Array.isArray(parts)) return `${at}parts is no list`;
  const wrong = parts.findIndex((part) => !isPart(part));
  if (wrong === -1) return '';
  return `${at}parts[${wrong}] is ${isJsonObject(parts[wrong]!) ? 'without the content of its kind' : 'no object'}`;
}
