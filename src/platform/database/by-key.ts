/*
 * Conditions on rows that are found by their key, in words that no partial index answers. Of open rows there are few most of the time, so an
 * index of them looks like the shorter way; a plan from then reads a whole backlog for each row, once there is one.
 */

/** Of a text. */
export const textByKey = (column: string): string => `${column} || ''`;

/** Of a time. @param without what stands for none. */
export const timeByKey = (column: string, without: 'infinity' | '-infinity' = 'infinity'): string =>
  `coalesce(${column}, '${without}')`;

/** Whether there is no such time. */
export const noTimeByKey = (column: string): string => `${timeByKey(column)} = 'infinity'`;
