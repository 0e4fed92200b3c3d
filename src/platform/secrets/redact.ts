const secretHeaders = /^(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key)$/i;
const secretWords = /password|passwd|secret|token|credential|api[-_]?key|private[-_]?key|bearer/i;
/**
 * Patterns of secrets. The first group is the text before the secret, which may be empty. Each pattern takes linear
 * time (test/checkout/regexes.spec.ts).
 */
const secretText = [
  /()\b(?:Bearer|Basic)\s+[\w.~+/=-]{6,}/gi,
  /()\brlt_[\w-]{8,}/g,
  /(\/\/[^/\s:@]*:)[^@\s/]+(?=@)/g,
  /((passw(or)?d|secret|api[-_]?key|\b(access_|refresh_|id_)?token)=)\\*("[^"\n]*"|'[^'\n]*'|["']?[^\s&;,"'<>]+)/gi,
];
/** A word that may contain a JWT, and the start of the first of its three parts. */
const dotted = /[\w.-]+/g;
const jwtBegin = /\beyJ[\w-]{8}/;
/** The minimum length of the second part of a JWT, in characters. */
const minPartLength = 8;
const maxDepth = 8;
/** Names that contain a secret word, but have harmless values. */
const harmless = new Set([
  'progressToken',
  'pageToken',
  'nextPageToken',
  'tokens',
  'costTokens',
  'tokenUrl',
  'credentialKind',
  'credential_kind',
  'hasCredential',
]);

/**
 * Replaces text that looks like a credential: bearer values, JWTs, keys of the gateway, passwords in URLs, and values
 * with a secret name.
 */
function redactText(text: string): string {
  const clean = secretText.reduce((before, pattern) => before.replace(pattern, '$1[redacted]'), text);
  return clean.includes('eyJ') ? clean.replace(dotted, withoutJwts) : clean;
}

/**
 * Replaces JWTs without a pattern for their three parts, which would search the rest of a long word again from every
 * possible start.
 */
function withoutJwts(word: string): string {
  const parts = word.split('.');
  const cleanParts: string[] = [];
  for (let at = 0; at < parts.length; at++) {
    const begin = parts.length - at > 2 && parts[at + 1]!.length >= minPartLength ? parts[at]!.search(jwtBegin) : -1;
    cleanParts.push(begin < 0 ? parts[at]! : `${parts[at]!.slice(0, begin)}[redacted]`);
    if (begin >= 0) at += 2;
  }
  return cleanParts.join('.');
}

/**
 * Returns a copy of a value for the log: secrets are replaced, recognised by name or by form. Errors keep their
 * message and stack.
 */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= maxDepth) return '[deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Date) return value;
  if (value instanceof Error) {
    // Of the fields that libraries add to their errors only the code is useful; the rest is clients, sockets and
    // bodies.
    return {
      type: value.name,
      ...('code' in value && { code: redact(value.code, depth + 1) }),
      message: redactText(value.message),
      stack: redactText(value.stack ?? ''),
      ...(value.cause !== undefined && { cause: redact(value.cause, depth + 1) }),
    };
  }
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [
      name,
      (secretHeaders.test(name) || secretWords.test(name)) &&
      !harmless.has(name) &&
      inner !== undefined &&
      inner !== null &&
      typeof inner !== 'boolean'
        ? '[redacted]'
        : redact(inner, depth + 1),
    ]),
  );
}
