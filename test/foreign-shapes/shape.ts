/**
 * The source of a shape, the shape, and the expected result: a part of the value, or a pattern of the error that
 * refuses it.
 */
export type Shape = readonly [source: string, given: unknown, expected: unknown];
