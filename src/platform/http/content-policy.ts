import type { RequestHandler } from 'express';

/** For pages of other projects that are served here: what they load and run comes from here alone, and no page frames them. */
export const contentPolicy: RequestHandler = (_request, response, next) => {
  response.setHeader(
    'Content-Security-Policy',
    `default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'`,
  );
  next();
};
