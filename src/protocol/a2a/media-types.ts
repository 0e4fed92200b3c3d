import type { Part } from './model.js';

/** The media type of a part: as it says, else that of its content; bytes and links that say nothing are octets. */
function mediaTypeOf(part: Part): string {
  const said = part.mediaType?.split(';')[0]?.trim().toLowerCase();
  if (said) return said;
  if (part.text !== undefined) return 'text/plain';
  return part.raw === undefined && part.url === undefined ? 'application/json' : 'application/octet-stream';
}

/** True when a list of modes (media types, perhaps with wildcards such as `image/*`) takes this type. */
function accepts(modes: readonly string[], mediaType: string): boolean {
  return modes.some((mode) => {
    const wanted = mode.split(';')[0]!.trim().toLowerCase();
    if (wanted === '*/*' || wanted === '*' || wanted === mediaType) return true;
    return wanted.endsWith('/*') && mediaType.startsWith(wanted.slice(0, -1));
  });
}

/** The media type of the first part that none of the modes takes (v1.0 section 3.3.2, ContentTypeNotSupportedError). */
export function refusedPart(parts: readonly Part[], modes: readonly string[]): string | undefined {
  return parts.map(mediaTypeOf).find((type) => !accepts(modes, type));
}
