import { z } from 'zod';
import { readableProblem } from './setting-shapes.js';

describe('readableProblem', () => {
  const problemOf = (schema: z.ZodType, value: unknown) =>
    readableProblem(schema.safeParse(value).error!.issues[0] as z.core.$ZodIssue);

  it('has the unit of a limit', () => {
    expect(problemOf(z.string().min(12), 'x')).toBe('must have at least 12 characters');
    expect(problemOf(z.string().max(2), 'xyz')).toBe('must have at most 2 characters');
    expect(problemOf(z.number().min(12), 1)).toBe('must be at least 12');
    expect(problemOf(z.number().max(2), 3)).toBe('must be at most 2');
  });
});
