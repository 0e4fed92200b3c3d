const secretNames =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|x-api-key)$|password|passwd|secret|token|credential|api[-_]?key|private[-_]?key|bearer/i;
/** With a group before and one behind what is secret, which may be empty. Each takes time in proportion to the text (test/regexes.spec.ts). */
const secretText = [
  /()\b(?:Bearer|Basic)\s+[\w.~+/=-]{6,}()/gi,
  /()\brlt_[\w-]{8,}()/g,
  /(\/\/[^/\s:@]*:)[^@\s/]+(@)/g,
  /((?:password|passwd|secret|api[-_]?key|\b(?:access_|refresh_|id_)?token)=)(?:\\*"[^"\n]*"|\\*'[^'\n]*'|\\*["']?[^\s&;,"'<>]+)()/gi,
];
/** A word in which a JWT may stand, and where the first of its three parts begins. */
const dotted = /[\w.-]+/g;
const jwtBegin = /\beyJ[\w-]{8}/;
/** The minimum length of the second part of a JWT, in characters. */
const leastPart = 8;
const maxDepth = 8;
/** Names that contain a secret word and hold none. */
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

/** Text without what looks like a credential: bearer values, JWTs, keys of ours, passwords in URLs, values whose names say what they are. */
function redactText(text: string): string {
  const clean = secretText.reduce((before, pattern) => before.replace(pattern, '$1[redacted]$2'), text);
  return clean.includes('eyJ') ? clean.replace(dotted, withoutJwts) : clean;
}

/** A pattern for the three parts of a JWT would look through the rest of a long word again from every place where one may begin. */
function withoutJwts(word: string): string {
  const parts = word.split('.');
  const kept: string[] = [];
  for (let at = 0; at < parts.length; at++) {
    const begin = parts.length - at > 2 && parts[at + 1]!.length >= leastPart ? parts[at]!.search(jwtBegin) : -1;
    kept.push(begin < 0 ? parts[at]! : `${parts[at]!.slice(0, begin)}[redacted]`);
    if (begin >= 0) at += 2;
  }
  return kept.join('.');
}

/** A copy of a value that may be logged: secrets by name and by look are replaced, errors keep message and stack. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth >= maxDepth) return '[deep]';
  if (Array.isArray(value)) return value.map((item) => redact(item, depth + 1));
  if (value instanceof Date) return value;
  if (value instanceof Error) {
    // Of what libraries hang on their errors only the code is of use; the rest is clients, sockets and bodies.
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
      secretNames.test(name) &&
      !harmless.has(name) &&
      inner !== undefined &&
      inner !== null &&
      typeof inner !== 'boolean'
        ? '[redacted]'
        : redact(inner, depth + 1),
    ]),
  );
}
