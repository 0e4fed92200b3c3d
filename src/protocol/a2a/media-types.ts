import { isEncrypted } from './encrypted-parts.js';
import type { Part } from './model.js';

/** The media type of a part: as it says, else that of its content; bytes and links that say nothing are octets. */
function mediaTypeOf(part: Part): string {
  const said = part.mediaType?.split(';')[0]?.trim().toLowerCase();
  if (said) return said;
  if (part.text !== undefined) return 'text/plain';
  return part.raw === undefined && part.url === undefined ? 'application/json' : 'application/octet-stream';
}

/** True when a list of modes (media types, perhaps with wildcards such as `image/*`) takes this type. */
export function takesMediaType(modes: readonly string[], mediaType: string): boolean {
  return modes.some((mode) => {
    const wanted = mode.split(';')[0]!.trim().toLowerCase();
    if (wanted === '*/*' || wanted === '*' || wanted === mediaType) return true;
    return wanted.endsWith('/*') && mediaType.startsWith(wanted.slice(0, -1));
  });
}

/** Which messages an agent takes. */
export interface Intake {
  readonly inputModes: readonly string[];
  /** Whether it takes messages that are not encrypted (RI-06). */
  readonly acceptCleartext: boolean;
}

export const cleartext = 'unencrypted messages';

/** What of a message the agent does not take: a media type, or unencrypted messages. Undefined when it takes the message. */
export function refusedContent(parts: readonly Part[], { inputModes, acceptCleartext }: Intake): string | undefined {
  return acceptCleartext || isEncrypted(parts) ? refusedPart(parts, inputModes) : cleartext;
}

/** The media type of the first part that none of the modes takes (v1.0 section 3.3.2, ContentTypeNotSupportedError). */
function refusedPart(parts: readonly Part[], modes: readonly string[]): string | undefined {
  return parts.map(mediaTypeOf).find((type) => !takesMediaType(modes, type));
}
