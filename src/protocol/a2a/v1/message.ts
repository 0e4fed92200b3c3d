import type { Json } from '../../../kernel/json.js';
import { defined } from '../request/defined.js';
import type { Fields } from '../request/fields.js';
import {
  addFileFields,
  bytesField,
  idRule,
  messageFields,
  partsField,
  roleField,
  urlField,
} from '../request/message-fields.js';
import type { Message, Part } from '../model.js';

/** Reads a message from a v1.0 client (section 4.1.4): it needs an id, the role of a user, and at least one part. */
export function readMessage(fields: Fields): Message {
  const messageId = fields.requiredText('messageId', idRule);
  const countBefore = fields.violations.length;
  const role = roleField(fields);
  if (role === undefined && fields.violations.length === countBefore) fields.refuse('role', 'is required');
  if (role !== undefined && role !== 'ROLE_USER') fields.refuse('role', 'must be ROLE_USER');
  const parts = partsField(fields, 'parts', readPart);
  const { contextId, taskId, metadata, extensions, referenceTaskIds } = messageFields(fields);
  return defined({
    messageId,
    contextId,
    taskId,
    role: 'ROLE_USER',
    parts,
    metadata,
    extensions,
    referenceTaskIds,
  });
}

type Content = 'text' | 'raw' | 'url' | 'data';
const contents: readonly Content[] = ['text', 'raw', 'url', 'data'];

/** Reads a part: exactly one content member (section 4.1.6), and the facts about it. */
export function readPart(fields: Fields): Part {
  const content = contentOf(fields);
  const part = content === undefined ? {} : readContent(fields, content);
  const metadata = fields.json('metadata');
  if (metadata !== undefined) part.metadata = metadata;
  return addFileFields(part, fields, 'filename', 'mediaType');
}

/** Finds the content member. Null is a value of a data part; in every other member it means absent. */
function contentOf(fields: Fields): Content | undefined {
  let found: Content | undefined;
  for (const name of contents) {
    if (fields.value(name) === undefined) continue;
    if (found !== undefined) return fields.refuseAll(oneContent);
    found = name;
  }
  return found ?? (fields.owns('data') ? 'data' : fields.refuseAll(oneContent));
}

const oneContent = 'must have exactly one of text, raw, url and data';

function readContent(fields: Fields, content: Content): Part {
  switch (content) {
    case 'text':
      return { text: fields.text('text', { empty: 'kept' }) };
    case 'raw':
      return { raw: bytesField(fields, 'raw') };
    case 'url':
      return { url: urlField(fields, 'url') };
    case 'data':
      return { data: readData(fields) };
  }
}

/** Reads any JSON, null included; refuses text that cannot be stored. */
function readData(fields: Fields): Json | undefined {
  return fields.storable('data', fields.value('data') ?? null);
}
