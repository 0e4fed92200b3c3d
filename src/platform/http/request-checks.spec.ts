import type { ArgumentMetadata } from '@nestjs/common';
import { z } from 'zod';
import { ValidationBySchema } from './request-checks.js';

describe('ValidationBySchema', () => {
  const schema = z.strictObject({ limit: z.coerce.number().default(50) });
  const read = (value: unknown, metadata: Omit<ArgumentMetadata, 'schema'>) =>
    new ValidationBySchema().transform(value, { ...metadata, schema });

  it.each<[string, Omit<ArgumentMetadata, 'schema'>]>([
    ['query', { type: 'query' }],
    ['body', { type: 'body' }],
    ['id', { type: 'param', data: 'id' }],
  ])('names the %s that has an unknown member', async (place, metadata) => {
    const message = `${place}: Unrecognized key: "owner"`;
    await expect(read({ owner: 'bob' }, metadata)).rejects.toMatchObject({ code: 'invalid_params', message });
  });

  it('returns the value as its schema reads it', async () => {
    await expect(read({ limit: '7' }, { type: 'query' })).resolves.toEqual({ limit: 7 });
  });
});
