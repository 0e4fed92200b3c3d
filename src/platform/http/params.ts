import { z } from 'zod';

/** An id of ours in a path. Anything else finds nothing, so its shape is not the client's concern. */
export const IdParam = z.string().max(200);

/** The query of a list that has no filters. */
export const PageQuery = z.strictObject({
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional(),
});
export type PageQuery = z.output<typeof PageQuery>;

/** Text that a person or a program named something by: printable, bounded, storable. */
export const Name = z
  .string()
  .trim()
  .min(1)
  .max(200)
  .refine((text) => text.isWellFormed() && !/\p{Cc}/u.test(text), {
    message: 'must not contain control characters or lone surrogates',
  });

/** Lower-case word that names a tenant in tokens and paths. */
export const Slug = z.string().regex(/^[a-z0-9](?:[a-z0-9_-]{0,61}[a-z0-9])?$/, {
  message: 'must be lower-case letters, digits, - or _, at most 63',
});

/**
 * A moment that a client named, with a time zone: from the years 1970 to 9999, the second with nine decimal places at most. Hands on the
 * same moment in UTC with milliseconds; the database does not read every year and offset that ISO 8601 has.
 */
export const Moment = z.iso
  .datetime({ offset: true, abort: true })
  .refine((text) => !/\.\d{10}/.test(text), { message: 'must have at most nine decimal places', abort: true })
  .refine((text) => /^(?:19[7-9]|[2-9]\d\d)\d-/.test(new Date(text).toISOString()), {
    message: 'must lie in the years 1970 to 9999',
    abort: true,
  })
  .overwrite((text) => new Date(text).toISOString());

/** The name of a header that a client chose (RFC 9110 section 5.1). */
export const HeaderName = z.string().regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,64}$/, { message: 'is not a header name' });

/** What a header of that name holds. */
export const HeaderValue = z
  .string()
  .min(1)
  .max(8_192)
  .regex(/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/, { message: 'must be printable ASCII without line breaks' });

/** Headers that frame a message and say what it is: of whoever sends it, never chosen by a client. */
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
