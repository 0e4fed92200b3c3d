import { z } from 'zod';

/** The schema of a list under `/api`, for its documentation. */
export function pageSchema<Item extends z.ZodType>(item: Item) {
  return z.object({ items: z.array(item), nextCursor: z.string().nullable() });
}
