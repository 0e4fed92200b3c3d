import { isJsonObject, type Json, type JsonObject } from '../../../kernel/json.js';
import type { Fields } from '../request/fields.js';
import { addFileFields, bytesField, urlField } from '../request/message-fields.js';
import type { Part } from '../model.js';
import { readPart as readNewerPart } from '../v1/message.js';
import { wrapUnknownPart } from '../unknown-part.js';
import { wrappedDataKey } from './data-flag.js';

/**
 * Reads a part in any older spelling. Its kind comes from `kind` (v0.3 section 6.5) or `type` (older agents), else from
 * its content member: that of v1.0, or `file`. `file` has `bytes` or `uri`; in the v0.3 proto `fileWithBytes` or
 * `fileWithUri`.
 */
export function readPart(fields: Fields): Part {
  const discriminator = fields.value('kind') === undefined ? 'type' : 'kind';
  const kind = fields.text(discriminator) ?? (fields.value('file') === undefined ? undefined : 'file');
  switch (kind) {
    case undefined:
      return readNewerPart(fields);
    case 'text':
      if (fields.value('text') === undefined) fields.refuse('text', 'is required');
      return withMetadata({ text: fields.text('text', { empty: 'kept' }) }, fields.json('metadata'));
    case 'file':
      return withMetadata(readFile(fields), fields.json('metadata'));
    case 'data':
      if (!fields.owns('data')) fields.refuse('data', 'is required');
      return unwrapped(fields.storable('data', fields.value('data') ?? null), fields.json('metadata'));
    default:
      // A kind with a namespace belongs to an extension, such as live activity: the part passes as data (AN-62).
      if (kind.includes('/')) return wrapUnknownPart(fields.whole());
      fields.refuse(discriminator, 'must be text, file or data');
      return {};
  }
}

/** Reads a part of the v0.3 proto, which has no discriminator and nests the data of a data part one level deeper. */
export function readProtoPart(fields: Fields): Part {
  const data = fields.value('data');
  if (fields.value('kind') !== undefined || fields.value('type') !== undefined || !isJsonObject(data))
    return readPart(fields);
  const inner: Json = Object.hasOwn(data, 'data') ? (data.data ?? null) : data;
  return unwrapped(fields.storable('data', inner), fields.json('metadata'));
}

function readFile(fields: Fields): Part {
  const file = fields.requiredChild('file');
  if (!file) return {};
  const [bytes, uri] = [either(file, 'bytes', 'fileWithBytes'), either(file, 'uri', 'fileWithUri')];
  if ((bytes === undefined) === (uri === undefined)) file.refuseAll('must have either bytes or uri');
  const part: Part =
    bytes !== undefined ? { raw: bytesField(file, bytes) } : uri !== undefined ? { url: urlField(file, uri) } : {};
  return addFileFields(part, file, 'name', 'mimeType');
}

function either(fields: Fields, name: string, protoName: string): string | undefined {
  return [name, protoName].find((each) => fields.value(each) !== undefined);
}

function unwrapped(data: Json | undefined, metadata: JsonObject | undefined): Part {
  if (metadata?.[wrappedDataKey] !== true || !isJsonObject(data) || !Object.hasOwn(data, 'value')) {
    return withMetadata({ data }, metadata);
  }
  const { [wrappedDataKey]: _flag, ...rest } = metadata;
  return withMetadata({ data: data.value }, Object.keys(rest).length > 0 ? rest : undefined);
}

function withMetadata(part: Part, metadata: JsonObject | undefined): Part {
  if (metadata !== undefined) part.metadata = metadata;
  return part;
}
