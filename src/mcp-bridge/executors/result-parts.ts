import { canonicalJson } from '../../kernel/canonical-json.js';
import { isJsonObject, type Json, type JsonObject } from '../../kernel/json.js';
import type { Part } from '../../protocol/a2a/model.js';
import { parseJson } from '../../protocol/json-text.js';

/**
 * Converts the result of a tool (MCP server/tools, 2025-11-25) to the parts of an artifact, in the same order: text,
 * images and audio as bytes, linked resources as URLs, embedded resources as text or bytes, and `structuredContent`
 * last, as data. A text that only repeats `structuredContent` as JSON, for older clients, is dropped; content of an
 * unknown kind is kept as data. Pure.
 */
export function partsOf({ content, structuredContent }: JsonObject): Part[] {
  const blocks = Array.isArray(content) ? content.filter(isJsonObject) : [];
  if (structuredContent === undefined) return blocks.map(partOf);
  const remaining = blocks.filter((block) => !repeats(block, structuredContent));
  return [...remaining.map(partOf), { data: structuredContent }];
}

/** Returns the texts of a result, e.g. the reason of a failure. */
export function textOfResult({ content }: JsonObject): string {
  const blocks = Array.isArray(content) ? content.filter(isJsonObject) : [];
  return blocks.flatMap(({ type, text }) => (type === 'text' && typeof text === 'string' ? [text] : [])).join('\n');
}

function partOf(block: JsonObject): Part {
  const { type, text, data, mimeType, uri, name, resource } = block;
  const mediaType = typeof mimeType === 'string' ? { mediaType: mimeType } : {};
  if (type === 'text' && typeof text === 'string') return { text };
  if ((type === 'image' || type === 'audio') && typeof data === 'string') return { raw: data, ...mediaType };
  if (type === 'resource_link' && typeof uri === 'string')
    return { url: uri, ...(typeof name === 'string' && { filename: name }), ...mediaType };
  return (type === 'resource' && isJsonObject(resource) && embedded(resource)) || { data: block };
}

function embedded({ uri, text, blob, mimeType }: JsonObject): Part | undefined {
  const about = {
    ...(typeof mimeType === 'string' && { mediaType: mimeType }),
    ...(typeof uri === 'string' && { metadata: { uri } }),
  };
  if (typeof text === 'string') return { text, ...about };
  return typeof blob === 'string' ? { raw: blob, ...about } : undefined;
}

function repeats({ type, text }: JsonObject, structured: Json): boolean {
  if (type !== 'text' || typeof text !== 'string') return false;
  const parsed = parseJson(text);
  return parsed.ok && canonicalJson(parsed.value) === canonicalJson(structured);
}
