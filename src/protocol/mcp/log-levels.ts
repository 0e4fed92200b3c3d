/** Of log messages, the most talkative first (MCP, logging; RFC 5424). */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

const known: ReadonlySet<unknown> = new Set(logLevels);

export function isLogLevel(level: unknown): level is (typeof logLevels)[number] {
  return known.has(level);
}

/** How weighty a level is; -1 for none. */
export function weightOf(level: string): number {
  return isLogLevel(level) ? logLevels.indexOf(level) : -1;
}
