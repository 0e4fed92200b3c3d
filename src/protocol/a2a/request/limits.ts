/** How much of what one request may hold. Bytes of the whole are the door's matter. */
export const limits = {
  parts: 100,
  extensions: 50,
  referenceTaskIds: 50,
  outputModes: 100,
  /** Characters of an id that a caller makes. */
  id: 256,
  mediaType: 256,
  filename: 1_024,
  url: 2_048,
  uri: 2_048,
  pageToken: 4_096,
  idempotencyKey: 255,
  /** Tasks or configurations of one page (v1.0 section 3.1.4). */
  pageSize: 100,
  defaultPageSize: 50,
  /** Characters of a push token, of credentials, of an authentication scheme. */
  token: 4_096,
  credentials: 8_192,
  scheme: 256,
} as const;
