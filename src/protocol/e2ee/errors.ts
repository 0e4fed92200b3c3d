/** Reasons why an envelope, a key or a stream is refused. */
export type E2eeErrorCode =
  | 'malformed'
  | 'wrong_version'
  | 'wrong_recipient'
  | 'wrong_context'
  | 'unknown_sender'
  | 'not_decryptable'
  | 'bad_signature'
  | 'replayed'
  | 'out_of_order'
  | 'truncated'
  | 'key_expired'
  | 'key_changed';

/** The only error class of `rialto/e2ee`. Its message contains no key and no plaintext. */
export class E2eeError extends Error {
  constructor(
    readonly code: E2eeErrorCode,
    message: string,
  ) {
    super(message);
    this.name = 'E2eeError';
  }
}
