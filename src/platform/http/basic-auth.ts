/** Returns `user:password` of Basic authentication (RFC 7617). */
export function basicOf(header: string | undefined): string | undefined {
  return header?.startsWith('Basic ') ? Buffer.from(header.slice(6), 'base64').toString('utf8') : undefined;
}
