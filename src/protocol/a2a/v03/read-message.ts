import { isJsonObject } from '../../../kernel/json.js';
import { defined } from '../request/defined.js';
import type { DecodeOptions } from '../dialect.js';
import type { Fields } from '../request/fields.js';
import { idRule, messageFields, partsField, roleField } from '../request/message-fields.js';
import type { Message } from '../model.js';
import { readPart, readProtoPart } from './read-part.js';

/** True when the message uses the words of the v0.3 proto, which has `content` instead of `parts`. */
export function isProtoMessage(message: Fields): boolean {
  return message.value('content') !== undefined && message.value('parts') === undefined;
}

/**
 * Reads a message from a client of v0.3 or older (v0.3 section 6.4). In the older spellings, which have no `kind`, the
 * id may be absent when `newId` is given. The role may be absent, because the sender is the user (Reyn's examples have
 * none). `skill.skillId`, which only the MCP bridge sends, becomes `metadata.skillId`.
 */
export function readMessage(fields: Fields, { newId }: DecodeOptions): Message {
  const skillId = bridgedSkill(fields);
  const isCurrent = skillId === undefined && (fields.value('kind') === 'message' || isProtoMessage(fields));
  const messageId = fields.text('messageId', idRule) ?? (isCurrent ? undefined : newId?.());
  if (messageId === undefined && fields.value('messageId') === undefined) fields.refuse('messageId', 'is required');
  const role = roleField(fields) ?? 'user';
  if (role !== 'user' && role !== 'ROLE_USER') fields.refuse('role', 'must be user');
  const parts = isProtoMessage(fields)
    ? partsField(fields, 'content', readProtoPart)
    : partsField(fields, 'parts', readPart);
  const { metadata, ...others } = messageFields(fields);
  return defined({
    messageId: messageId ?? '',
    role: 'ROLE_USER',
    parts,
    ...others,
    metadata: skillId === undefined ? metadata : { ...metadata, skillId },
  });
}

function bridgedSkill(fields: Fields): string | undefined {
  return isJsonObject(fields.value('skill')) ? fields.child('skill')?.text('skillId', idRule) : undefined;
}

/** Builds a message with only a text. */
export function textMessage(text: string, newId: () => string): Message {
  return { messageId: newId(), role: 'ROLE_USER', parts: [{ text }] };
}
