import { isEncrypted } from './encrypted-parts.js';
import type { Part } from './model.js';

/**
 * Returns the media type of a part: the stated one, or the one of its content. Bytes and links without a type are octet
 * streams.
 */
function mediaTypeOf(part: Part): string {
  const stated = part.mediaType?.split(';')[0]?.trim().toLowerCase();
  if (stated) return stated;
  if (part.text !== undefined) return 'text/plain';
  return part.raw === undefined && part.url === undefined ? 'application/json' : 'application/octet-stream';
}

/** True when a list of modes (media types, perhaps with wildcards such as `image/*`) accepts this type. */
export function takesMediaType(modes: readonly string[], mediaType: string): boolean {
  return modes.some((mode) => {
    const wanted = mode.split(';')[0]!.trim().toLowerCase();
    if (wanted === '*/*' || wanted === '*' || wanted === mediaType) return true;
    return wanted.endsWith('/*') && mediaType.startsWith(wanted.slice(0, -1));
  });
}

/** The messages that an agent accepts. */
export interface Intake {
  readonly inputModes: readonly string[];
  /** True when the agent accepts messages that are not encrypted (RI-06). */
  readonly acceptCleartext: boolean;
  readonly executor: Worker;
}

/** An executor. `otherwise` is the one for messages that no route of `routes` fits. */
interface Worker {
  readonly kind: string;
  readonly otherwise?: { readonly kind: string };
}

export const cleartext = 'unencrypted messages';
export const encrypted = 'encrypted messages';

/** Executors that read the message in the gateway, which has no key. */
const readers: ReadonlySet<string> = new Set(['llm', 'mcp-tool']);

/**
 * True when the gateway itself reads the encrypted messages for this executor. They have no text that fits a route, so
 * an agent with routes gives them to `otherwise`.
 */
export function isReader({ kind, otherwise }: Worker): boolean {
  return readers.has(otherwise?.kind ?? kind);
}

/**
 * Returns the content that the agent does not accept: a media type, `cleartext` or `encrypted`. Undefined when it
 * accepts the message.
 */
export function refusedContent(parts: readonly Part[], agent: Intake): string | undefined {
  if (!isEncrypted(parts)) return agent.acceptCleartext ? refusedPart(parts, agent.inputModes) : cleartext;
  return isReader(agent.executor) ? encrypted : refusedPart(parts, agent.inputModes);
}

/** Returns the media type of the first part that no mode accepts (v1.0 section 3.3.2, ContentTypeNotSupportedError). */
function refusedPart(parts: readonly Part[], modes: readonly string[]): string | undefined {
  return parts.map(mediaTypeOf).find((type) => !takesMediaType(modes, type));
}
