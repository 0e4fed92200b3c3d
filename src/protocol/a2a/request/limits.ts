/** Limits for the content of one request. The door limits the bytes of the whole request. */
export const limits = {
  parts: 100,
  extensions: 50,
  referenceTaskIds: 50,
  outputModes: 100,
  /** Characters of an id that a caller creates. */
  id: 256,
  mediaType: 256,
  filename: 1_024,
  url: 2_048,
  uri: 2_048,
  pageToken: 4_096,
  idempotencyKey: 255,
  /** Tasks or configurations on one page (v1.0 section 3.1.4). */
  pageSize: 100,
  defaultPageSize: 50,
  /** Characters of a push token; the two members below limit credentials and authentication schemes. */
  token: 4_096,
  credentials: 8_192,
  scheme: 256,
} as const;
