import { Catch, HttpException, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { RialtoError, type ErrorCode } from '../../kernel/errors.js';
import { statementError } from '../database/outage.js';
import { allowedMethods } from '../library-internals/express-routes.js';
import { LOGGER, type Logger } from '../telemetry/logger.js';
import type { DoorRequest, DoorResponse } from './http.types.js';
import { sendProblem } from './problem.js';

const codesByStatus: Partial<Record<number, ErrorCode>> = {
  400: 'invalid_params',
  401: 'unauthenticated',
  403: 'denied',
  404: 'not_found',
  405: 'method_not_allowed',
  413: 'too_large',
  415: 'unsupported_media_type',
};

/**
 * Turns everything a controller throws into a problem document. Unexpected errors are logged, and their text stays
 * private.
 */
@Catch()
export class ProblemFilter implements ExceptionFilter {
  constructor(@Inject(LOGGER) private readonly log: Logger) {}

  catch(thrown: unknown, host: ArgumentsHost): void {
    const http = host.switchToHttp();
    const request = http.getRequest<DoorRequest>();
    const response = http.getResponse<DoorResponse>();
    const error =
      thrown instanceof HttpException ? fromNest(thrown, request, response) : RialtoError.from(statementError(thrown));
    if (error.code === 'internal') this.log.error({ err: thrown, requestId: request.requestId }, 'a request failed');
    if (response.headersSent) response.destroy();
    else sendProblem(request, response, error.code, error);
  }
}

function fromNest(exception: HttpException, request: DoorRequest, response: DoorResponse): RialtoError {
  const code = codesByStatus[exception.getStatus()] ?? (exception.getStatus() < 500 ? 'invalid_params' : 'internal');
  if (code !== 'not_found') return new RialtoError(code, { message: exception.message });
  const methods = allowedMethods(request);
  if (methods.length === 0) return new RialtoError(code, { message: 'no resource exists at this path' });
  if (!response.headersSent) response.setHeader('Allow', methods.join(', '));
  const message = `${request.method} is not possible at this path; possible: ${methods.join(', ')}`;
  return new RialtoError('method_not_allowed', { message });
}
