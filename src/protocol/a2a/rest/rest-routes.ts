import { percentDecoded } from '../../../kernel/text.js';
import type { A2aVersion } from '../model.js';
import type { OperationName } from '../request/operations.js';

/** A path of one version, with the operation of each HTTP method. */
export interface RestRoute {
  readonly version: A2aVersion;
  readonly segments: readonly Segment[];
  readonly methods: Readonly<Partial<Record<string, OperationName>>>;
}

/** A segment of a path: a literal, or a parameter with an optional verb behind it (`{id}:cancel`). */
type Segment = { readonly literal: string } | { readonly param: string; readonly verb: string };

/**
 * The paths of v1.0 (section 11.3) below the url of an interface; each also exists below `/{tenant}`. The specification
 * and its proto disagree about whether a subscription is a POST or a GET, so both work. Paths with a verb come first,
 * because a path without one would read the verb as part of an id.
 */
export const v1Routes: readonly RestRoute[] = [
  route('1.0', '/message:send', { POST: 'SendMessage' }),
  route('1.0', '/message:stream', { POST: 'SendStreamingMessage' }),
  route('1.0', '/tasks', { GET: 'ListTasks' }),
  route('1.0', '/tasks/{id}:cancel', { POST: 'CancelTask' }),
  route('1.0', '/tasks/{id}:subscribe', { POST: 'SubscribeToTask', GET: 'SubscribeToTask' }),
  route('1.0', '/tasks/{id}', { GET: 'GetTask' }),
  route('1.0', '/tasks/{taskId}/pushNotificationConfigs', {
    POST: 'CreateTaskPushNotificationConfig',
    GET: 'ListTaskPushNotificationConfigs',
  }),
  route('1.0', '/tasks/{taskId}/pushNotificationConfigs/{id}', {
    GET: 'GetTaskPushNotificationConfig',
    DELETE: 'DeleteTaskPushNotificationConfig',
  }),
  route('1.0', '/extendedAgentCard', { GET: 'GetExtendedAgentCard' }),
];

/** The paths of v0.3 (section 3.5.3) below `/v1`; they have no tenants. */
export const v03Routes: readonly RestRoute[] = [
  route('0.3', '/message:send', { POST: 'SendMessage' }),
  route('0.3', '/message:stream', { POST: 'SendStreamingMessage' }),
  route('0.3', '/tasks', { GET: 'ListTasks' }),
  route('0.3', '/tasks/{id}:cancel', { POST: 'CancelTask' }),
  route('0.3', '/tasks/{id}:subscribe', { POST: 'SubscribeToTask', GET: 'SubscribeToTask' }),
  route('0.3', '/tasks/{id}', { GET: 'GetTask' }),
  route('0.3', '/tasks/{taskId}/pushNotificationConfigs', {
    POST: 'CreateTaskPushNotificationConfig',
    GET: 'ListTaskPushNotificationConfigs',
  }),
  route('0.3', '/tasks/{taskId}/pushNotificationConfigs/{pushNotificationConfigId}', {
    GET: 'GetTaskPushNotificationConfig',
    DELETE: 'DeleteTaskPushNotificationConfig',
  }),
  route('0.3', '/card', { GET: 'GetExtendedAgentCard' }),
];

/** Returns the decoded parameters of a path when its segments (as written in the url) match the route. */
export function paramsOf(route: RestRoute, segments: readonly string[]): Record<string, string> | undefined {
  if (segments.length !== route.segments.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, expected] of route.segments.entries()) {
    const segment = segments[index]!;
    if ('literal' in expected) {
      if (percentDecoded(segment) !== expected.literal) return undefined;
      continue;
    }
    // The verb is matched before decoding, because an id may have an escaped colon.
    if (!segment.endsWith(expected.verb)) return undefined;
    const value = percentDecoded(segment.slice(0, segment.length - expected.verb.length));
    if (value === undefined || value === '') return undefined;
    params[expected.param] = value;
  }
  return params;
}

function route(version: A2aVersion, template: string, methods: RestRoute['methods']): RestRoute {
  const segments = template.slice(1).split('/').map(segmentOf);
  return { version, segments, methods };
}

function segmentOf(text: string): Segment {
  const found = /^\{(\w+)\}(:\w+)?$/.exec(text);
  return found ? { param: found[1]!, verb: found[2] ?? '' } : { literal: text };
}
