import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import type { Message, Part } from '../model.js';

/** Members that make data an encrypted part. They are no arguments. */
const envelope = new Set(['encrypted_payload', 'encryption_version']);

/** Arguments in a message, as policies read them. */
export interface MessageArgs {
  readonly args: JsonObject;
  /** Names that have several values in the message: a receiver may use any of them. */
  readonly unclear: readonly string[];
}

/**
 * Returns the members of all data of a message, also in lists, and the skill that its metadata name. A value that is in
 * doubt is reported: more parts must not hide an argument from a policy, and a `skillId` in the data chooses no skill.
 */
export function messageArgs({ parts, metadata }: Pick<Message, 'parts' | 'metadata'>): MessageArgs {
  const objects = parts.flatMap(objectsIn);
  const skillId = typeof metadata?.skillId === 'string' ? metadata.skillId : undefined;
  const [first] = objects;
  if (first && objects.length === 1 && skillId === undefined && !('encrypted_payload' in first || 'skillId' in first))
    return { args: first, unclear: [] };
  const args: JsonObject = {};
  const unclear = new Set<string>();
  const add = (name: string, value: Json): void => {
    if (!Object.hasOwn(args, name)) args[name] = value;
    else if (args[name] !== value) unclear.add(name);
  };
  if (skillId !== undefined) add('skillId', skillId);
  for (const object of objects)
    for (const [name, value] of Object.entries(object)) if (!isEnvelope(object, name)) add(name, value);
  if (skillId === undefined && Object.hasOwn(args, 'skillId')) unclear.add('skillId');
  return { args, unclear: [...unclear] };
}

function objectsIn({ data }: Part): JsonObject[] {
  if (Array.isArray(data)) return data.filter(isJsonObject);
  return isJsonObject(data) ? [data] : [];
}

function isEnvelope(object: JsonObject, name: string): boolean {
  return envelope.has(name) && 'encrypted_payload' in object;
}
