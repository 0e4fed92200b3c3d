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

/** A message as a client of v1.0 sends it (section 4.1.4): its own id, the role of a user, at least one part. */
export function readMessage(fields: Fields): Message {
  const messageId = fields.requiredText('messageId', idRule);
  const wrong = fields.violations.length;
  const role = roleField(fields);
  if (role === undefined && fields.violations.length === wrong) fields.refuse('role', 'is required');
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

/** A part: exactly one member of content (section 4.1.6), and what else is said about it. */
export function readPart(fields: Fields): Part {
  const content = contentOf(fields);
  const part = content === undefined ? {} : readContent(fields, content);
  const metadata = fields.json('metadata');
  if (metadata !== undefined) part.metadata = metadata;
  return addFileFields(part, fields, 'filename', 'mediaType');
}

/** Null is a JSON value that a data part may carry, and the absence of any other member. */
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

/** Any JSON, null included, unless text in it cannot be stored. */
function readData(fields: Fields): Json | undefined {
  return fields.storable('data', fields.value('data') ?? null);
}
