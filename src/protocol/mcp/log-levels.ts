/** The levels of log messages, the most verbose first (MCP, logging; RFC 5424). */
export const logLevels = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;

const known: ReadonlySet<unknown> = new Set(logLevels);

export function isLogLevel(level: unknown): level is (typeof logLevels)[number] {
  return known.has(level);
}

/** Returns the severity of a level; -1 for an unknown level. */
export function weightOf(level: string): number {
  return isLogLevel(level) ? logLevels.indexOf(level) : -1;
}
