import { z } from 'zod';

/** An id in a path. Any other text simply matches no object, so its shape is not checked. */
export const IdParam = z.string().max(200);

/** The query of a list without filters. */
export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type PageQuery = z.output<typeof PageQuery>;

/** A display name: printable, bounded text that the database can store. */
export const Name = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), {
    message: 'must not contain control characters or lone surrogates',
  });

/** A lower-case word that names a tenant in tokens and paths. */
export const Slug = z.string().regex(/^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/, {
  message: 'must be lower-case letters, digits, - or _, at most 63',
});

/**
 * A time that a client gives, with a time zone: in the years 1970 to 9999, with at most nine decimal places. It is
 * converted to UTC with milliseconds, because the database does not accept every year and offset of ISO 8601.
 */
export const Moment = z.iso
  .datetime({ offset: true, abort: true })
  .refine((text) => !/\.\d{10}/.test(text), { message: 'must have at most nine decimal places', abort: true })
  .refine((text) => /^(?:19[7-9]|[2-9]\d\d)\d-/.test(new Date(text).toISOString()), {
    message: 'must lie in the years 1970 to 9999',
    abort: true,
  })
  .overwrite((text) => new Date(text).toISOString());

/** The name of a header that a client chooses (RFC 9110 section 5.1). */
export const HeaderName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, { message: 'is not a header name' });

/** The value of such a header. */
export const HeaderValue = z
  .string()
  .min(1)
  .max(8_192)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, { message: 'must be printable ASCII without line breaks' });

/** Headers that frame a message and describe it: the sender of the message sets them, a client may not. */
export const framingHeaders: readonly string[] = [
  'host',
  'content-length',
  'content-type',
  'transfer-encoding',
  'connection',
  'upgrade',
  'te',
  'trailer',
  'expect',
];
