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
