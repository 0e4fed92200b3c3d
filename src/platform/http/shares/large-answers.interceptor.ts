import { StreamableFile, type CallHandler, type ExecutionContext, type NestInterceptor } from '@nestjs/common';
import { mergeMap, type Observable } from 'rxjs';
import type { AnswerBudget } from './answer-budget.js';
import type { DoorResponse } from '../http.types.js';
import { longText, stringifyLong, weigh } from '../../turns.js';

/** Applies the answer budget to controllers. Files are excluded, because they are streamed. */
export class LargeAnswers implements NestInterceptor {
  constructor(private readonly budget: AnswerBudget) {}

  intercept(context: ExecutionContext, next: CallHandler<unknown>): Observable<unknown> {
    const response = context.switchToHttp().getResponse<DoorResponse>();
    return next.handle().pipe(
      mergeMap(async (value) => {
        if (value instanceof StreamableFile) return value;
        const weight = await weigh(value);
        await this.budget.waitForShare(response, weight);
        // Writing a large answer takes time, also when its caller is gone.
        if (response.destroyed) return undefined;
        if (weight < longText || typeof value !== 'object') return value;
        response.setHeader('Content-Type', 'application/json; charset=utf-8');
        return stringifyLong(value, weight);
      }),
    );
  }
}
