/** Where a shape comes from, the shape, and how it is read: a part of the value, or a pattern of the error that refuses it. */
export type Shape = readonly [source: string, given: unknown, expected: unknown];
