import type { z } from 'zod';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import { invalidBody } from '../../platform/http/request-checks.js';
import type { WorkWish } from '../../registry/routing.service.js';
import { DispatchStep, type InvokeStep } from '../dispatch.types.js';
import { fillTemplates } from './step-templates.js';

/** Returns the work that a step describes, with its templates filled. Throws `invalid_params`. */
export function workWish(step: DispatchStep): WorkWish & Pick<DispatchStep, 'webhook_url' | 'thread'> {
  const { workType, description, requiredSkills, args, ...rest } = fillStep(step, DispatchStep);
  return {
    ...rest,
    workType,
    description,
    requiredSkills,
    args: args ?? { workType, description, requiredSkills },
  };
}

/**
 * Fills the templates of a step and validates it again, because a template may insert any value. Throws
 * `invalid_params`.
 */
export function fillStep<Step extends InvokeStep | DispatchStep>(
  { context = {}, ...step }: Step,
  schema: z.ZodType<Step>,
): Step {
  const result = fillTemplates(step as unknown as JsonObject, context);
  if (!result.ok)
    throw new RialtoError('invalid_params', {
      message: 'a template cannot be filled',
      violations: [...result.violations],
    });
  const checked = schema.safeParse(result.value);
  if (!checked.success) throw invalidBody(checked.error.issues);
  return checked.data;
}
