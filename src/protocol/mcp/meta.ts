const reserved = 'io.modelcontextprotocol/';

/** Members of `_meta` that the 2026-07-28 revision of MCP reserves. */
export const metaKeys = {
  protocolVersion: `${reserved}protocolVersion`,
  clientInfo: `${reserved}clientInfo`,
  clientCapabilities: `${reserved}clientCapabilities`,
  logLevel: `${reserved}logLevel`,
  serverInfo: `${reserved}serverInfo`,
} as const;

/** Whether MCP reserves a member of `_meta`. */
export function isReservedMeta(key: string): boolean {
  return key.startsWith(reserved);
}
