import type { RequestHandler } from 'express';

/**
 * Content policy for third-party pages that the gateway serves: they load and run only resources of the gateway, and
 * no page may frame them.
 */
export const contentPolicy: RequestHandler = (_request, response, next) => {
  response.setHeader(
    'Content-Security-Policy',
    `default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'`,
  );
  next();
};
