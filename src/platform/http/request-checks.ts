import type { ArgumentMetadata, PipeTransform } from '@nestjs/common';
import type { NextFunction } from 'express';
import { RialtoError } from '../../kernel/errors.js';
import type { DoorRequest, DoorResponse } from './http.types.js';
import { sendProblem } from './problem.js';

/** Sets the security headers of every management API response. */
export function securityHeaders(_request: DoorRequest, response: DoorResponse, next: NextFunction): void {
  response.setHeader('X-Content-Type-Options', 'nosniff');
  response.setHeader('Referrer-Policy', 'no-referrer');
  response.setHeader('X-Frame-Options', 'DENY');
  response.setHeader('Cache-Control', 'no-store');
  next();
}

/**
 * Refuses a path that cannot be decoded, or that contains a control character. The router would answer it with an
 * internal error.
 */
export function rejectUnsafePaths(request: DoorRequest, response: DoorResponse, next: NextFunction): void {
  const url = request.url ?? '/';
  if (url.length > 8_192)
    return sendProblem(
      request,
      response,
      'too_large',
      new RialtoError('too_large', { message: 'the URL is longer than 8192 characters' }),
    );
  try {
    const text = decodeURIComponent(url.replaceAll('+', ' '));
    if (/\p{Cc}/u.test(text))
      throw new RialtoError('invalid_params', { message: 'the URL contains a control character' });
    next();
  } catch (error) {
    const known =
      error instanceof RialtoError
        ? error
        : new RialtoError('invalid_params', { message: 'the URL is not properly encoded' });
    sendProblem(request, response, known.code, known);
  }
}

interface Issue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { key: PropertyKey })[];
}

const maxViolations = 50;

/**
 * The error of a value that its schema refuses: each issue with its field.
 * @param whole name of the value, for an issue that has no field.
 */
export function invalidBody(issues: readonly Issue[], whole = 'body'): RialtoError {
  const violations = issues.slice(0, maxViolations).map(({ message, path }) => ({
    field: (path ?? []).map((segment) => String(typeof segment === 'object' ? segment.key : segment)).join('.'),
    description: message.replace(/^Invalid input: expected .+, received undefined$/, 'is required'),
  }));
  const [first] = violations;
  return new RialtoError('invalid_params', {
    message: first && `${first.field || whole}: ${first.description}`.slice(0, 500),
    violations,
  });
}

/** Validates bodies, queries and parameters by their schemas. */
export class ValidationBySchema implements PipeTransform {
  async transform(value: unknown, { schema, type, data = type }: ArgumentMetadata): Promise<unknown> {
    if (!schema || type === 'custom') return value;
    const result = await schema['~standard'].validate(value);
    if (result.issues) throw invalidBody(result.issues, data);
    return result.value;
  }
}
