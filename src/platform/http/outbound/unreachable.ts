/** The reason why a target could not be reached, as one word for programs. */
export type UnreachableReason =
  | 'refused'
  | 'unknown_host'
  | 'no_route'
  | 'connect_timeout'
  | 'broken'
  | 'tls'
  | 'not_tls'
  | 'not_http'
  | 'certificate';

const texts: Record<UnreachableReason, string> = {
  refused: 'the connection was refused',
  unknown_host: 'its host name is unknown',
  no_route: 'there is no route to it',
  connect_timeout: 'no connection in time',
  broken: 'the connection broke off',
  tls: 'TLS failed',
  not_tls: 'it does not speak TLS on this port; should its URL start with http instead of https?',
  not_http: 'it does not speak HTTP on this port',
  certificate: 'its TLS certificate is not valid',
};

const byCode: Readonly<Record<string, UnreachableReason>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'unknown_host',
  EAI_AGAIN: 'unknown_host',
  EHOSTUNREACH: 'no_route',
  ENETUNREACH: 'no_route',
  ETIMEDOUT: 'connect_timeout',
  UND_ERR_CONNECT_TIMEOUT: 'connect_timeout',
  ECONNRESET: 'broken',
  EPIPE: 'broken',
  UND_ERR_SOCKET: 'broken',
  ERR_SSL_WRONG_VERSION_NUMBER: 'not_tls',
  ERR_SSL_PACKET_LENGTH_TOO_LONG: 'not_tls',
  ERR_TLS_CERT_ALTNAME_INVALID: 'certificate',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'certificate',
  SELF_SIGNED_CERT_IN_CHAIN: 'certificate',
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: 'certificate',
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: 'certificate',
};

/** How many causes of an error are examined. */
const maxCauses = 6;

/**
 * Returns why a target could not be reached, as far as the causes of an error show it. The text contains no address
 * (abuse 23).
 */
export function unreachableReason(error: unknown): { reason: UnreachableReason; text: string } | undefined {
  for (const code of codesOf(error)) {
    const reason = reasonOf(code);
    if (reason !== undefined) return { reason, text: texts[reason] };
  }
  return undefined;
}

/** Appends the reason to a text that says what could not be reached, when the reason is known. */
export function withReason(text: string, error: unknown): string {
  const found = unreachableReason(error);
  return found ? `${text}: ${found.text}` : text;
}

function reasonOf(code: string): UnreachableReason | undefined {
  if (Object.hasOwn(byCode, code)) return byCode[code];
  if (code.startsWith('HPE_')) return 'not_http';
  if (code.startsWith('CERT_')) return 'certificate';
  return code === 'EPROTO' || code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') ? 'tls' : undefined;
}

/** The codes of an error and its causes; when several addresses were tried, the codes of each attempt. */
function codesOf(error: unknown): string[] {
  const codes: string[] = [];
  let next = error;
  for (let depth = 0; depth < maxCauses && typeof next === 'object' && next !== null; depth++) {
    const { name, code, errors, cause, message } = next as Record<string, unknown>;
    if (typeof code === 'string') codes.push(code);
    // undici's parser sets no code; grpc-js has the code of the socket only in its message.
    if (name === 'HTTPParserError') codes.push('HPE_INVALID');
    if (typeof code === 'number' && isText(message))
      codes.push(...(message.match(/\b(?:E[A-Z]{4,}(?:_[A-Z]+)*|ERR_[A-Z_]+|CERT_[A-Z_]+)\b/g) ?? []));
    if (Array.isArray(errors)) codes.push(...errors.map((each) => (each as { code?: unknown }).code).filter(isText));
    next = cause;
  }
  return codes;
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}
