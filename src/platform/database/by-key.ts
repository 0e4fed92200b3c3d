// Conditions for queries that find rows by their key. They are written so that no partial index matches. A partial
// index of open rows is small most of the time, so the planner prefers it; that plan then reads the whole backlog for
// each row as soon as there is a backlog.

/** Compares a text column. */
export const textByKey = (column: string): string => `${column} || ''`;

/** Compares a time column. @param without the value that stands for null. */
export const timeByKey = (column: string, without: 'infinity' | '-infinity' = 'infinity'): string =>
  `coalesce(${column}, '${without}')`;

/** True when the time column is null. */
export const noTimeByKey = (column: string): string => `${timeByKey(column)} = 'infinity'`;
