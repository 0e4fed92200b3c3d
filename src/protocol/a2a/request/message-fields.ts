import type { Fields, TextRule } from './fields.js';
import { limits } from './limits.js';
import type { Message, Part } from '../model.js';

export const idRule: TextRule = { max: limits.id };
/** Rule for an id that may be absent: ProtoJSON does not distinguish an empty text from an absent one. */
const optionalIdRule: TextRule = { ...idRule, empty: 'absent' };
/** Indexed by their numbers in a2a.proto. */
const roles = ['ROLE_UNSPECIFIED', 'ROLE_USER', 'ROLE_AGENT'];
/** Rule for an id that is only looked up: an id of any length is either known or unknown. */
export const lookupRule: TextRule = {};

const filenameRule: TextRule = { max: limits.filename, empty: 'absent' };
const mediaTypeRule: TextRule = { max: limits.mediaType, empty: 'absent', header: true };
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/;
const standardBase64 = /^[A-Za-z0-9+/]*={0,2}$/;

/** Reads the members of a message that all versions spell alike. */
export function messageFields(
  fields: Fields,
): Pick<Message, 'contextId' | 'taskId' | 'metadata' | 'extensions' | 'referenceTaskIds'> {
  return {
    contextId: fields.text('contextId', optionalIdRule),
    taskId: fields.text('taskId', optionalIdRule),
    metadata: fields.json('metadata'),
    extensions: fields.texts('extensions', limits.extensions, { max: limits.uri }),
    referenceTaskIds: fields.texts('referenceTaskIds', limits.referenceTaskIds, idRule),
  };
}

/** Reads the role by its name or number; undefined when it is absent or the default of the proto. */
export function roleField(fields: Fields): string | undefined {
  const role = fields.enumName('role', roles);
  return role === roles[0] ? undefined : role;
}

/** Reads at least one part (v1.0 section 5.7) with the reader of the version. */
export function partsField(fields: Fields, name: string, readPart: (part: Fields) => Part): Part[] {
  const value = fields.value(name);
  if (value === undefined) fields.refuse(name, 'is required');
  if (Array.isArray(value) && value.length === 0) fields.refuse(name, 'must not be empty');
  return fields.children(name, limits.parts).map(readPart);
}

/** Adds the file name and media type to a part, read under the names of the version; an empty text counts as absent. */
export function addFileFields(part: Part, fields: Fields, filenameName: string, mediaTypeName: string): Part {
  const filename = fields.text(filenameName, filenameRule);
  const mediaType = fields.text(mediaTypeName, mediaTypeRule);
  if (filename !== undefined) part.filename = filename;
  if (mediaType !== undefined) part.mediaType = mediaType;
  return part;
}

/**
 * Reads bytes in base64. ProtoJSON readers accept both alphabets, with or without padding. The canonical form is the
 * standard alphabet with padding, as ProtoJSON writes it; text in this form is returned unchanged.
 */
export function bytesField(part: Fields, name: string): string | undefined {
  const text = part.text(name, { empty: 'kept' });
  if (text === undefined) return undefined;
  const isPadded = text.length % 4 === 0;
  if (isPadded && standardBase64.test(text)) return text;
  const isUnpadded = !text.endsWith('=') && text.length % 4 !== 1;
  if (!(isPadded || isUnpadded) || !base64.test(text)) return part.refuse(name, 'must be base64');
  return Buffer.from(text, 'base64').toString('base64');
}

/**
 * Reads the url of a file: any scheme and length (`data:` urls are long), but no control characters such as line
 * breaks.
 */
export function urlField(part: Fields, name: string): string | undefined {
  const url = part.text(name);
  return url !== undefined && /\p{Cc}/u.test(url) ? part.refuse(name, 'must not contain control characters') : url;
}
