import { z } from 'zod';
import { Moment } from '../../platform/http/params.js';

/** Body of `POST /api/webhooks/secrets`. */
export const MakeSecret = z.strictObject({
  /** Seconds that earlier secrets stay active. */
  graceSeconds: z.number().int().min(0).max(2_592_000).default(86_400),
});
export type MakeSecret = z.output<typeof MakeSecret>;

export const WebhookSecretView = z.object({
  id: z.string(),
  hint: z.string(),
  createdAt: z.iso.datetime(),
  endsAt: z.iso.datetime().nullable(),
});
export type WebhookSecretView = z.output<typeof WebhookSecretView>;

export const NewWebhookSecretView = WebhookSecretView.extend({ secret: z.string() });
export type NewWebhookSecretView = z.output<typeof NewWebhookSecretView>;

/**
 * `pending`: not tried yet; `processing`: an attempt is in progress; `failed`: the last attempt failed, and a retry is
 * planned; `dead`: given up; `skipped`: will never be posted.
 */
export const DeliveryState = z.enum(['pending', 'processing', 'delivered', 'failed', 'dead', 'skipped']);
export type DeliveryState = z.output<typeof DeliveryState>;

const range = {
  /** Time of creation: `from` inclusive, `to` exclusive. */
  from: Moment.optional(),
  to: Moment.optional(),
};
const filters = {
  state: DeliveryState.optional(),
  taskId: z.uuid().optional(),
  configId: z.string().max(256).optional(),
  ...range,
};

export const DeliveryQuery = z.strictObject({
  ...filters,
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(500).optional(),
});
export type DeliveryQuery = z.output<typeof DeliveryQuery>;

export const SummaryQuery = z.strictObject(range);
export type SummaryQuery = z.output<typeof SummaryQuery>;

/**
 * Body of `POST /api/webhooks/deliveries/replay`. At least one filter is required, so that no caller replays everything
 * by mistake.
 */
export const ReplayDeliveries = z
  .strictObject({ ...filters, cursor: z.string().max(500).optional() })
  .refine(({ state, taskId, from }) => state !== undefined || taskId !== undefined || from !== undefined, {
    message: 'needs at least one of state, taskId and from',
  });
export type ReplayDeliveries = z.output<typeof ReplayDeliveries>;

export const Replayed = z.object({
  replayed: z.number(),
  /** Set when more deliveries may match. */
  nextCursor: z.string().nullable(),
});
export type Replayed = z.output<typeof Replayed>;

/** `failing`: the last attempt failed. `disabled`: nothing is posted until it is activated. */
const ConfigState = z.enum(['active', 'failing', 'disabled']);

/** A push configuration: where changes of one task are posted. */
export const ConfigView = z.object({
  taskId: z.string(),
  id: z.string(),
  /** URL without its query. */
  url: z.string(),
  format: z.string(),
  state: ConfigState,
  /**
   * Why it is disabled: `gone` (the receiver answered 410), `dead` (given up for the rest of a run), `failing` (five
   * days with failures only), `deactivated`.
   */
  reason: z.string().nullable(),
  /** Time of the first failure since the last success. */
  failingSince: z.iso.datetime().nullable(),
  createdAt: z.iso.datetime(),
});
export type ConfigView = z.output<typeof ConfigView>;

/** An id of a configuration in a path; A2A callers choose it freely. */
export const ConfigIdParam = z.string().max(256);

export const ConfigQuery = z.strictObject({
  state: ConfigState.optional(),
  taskId: z.uuid().optional(),
  limit: z.coerce.number().int().min(1).max(100).default(20),
  cursor: z.string().max(500).optional(),
});
export type ConfigQuery = z.output<typeof ConfigQuery>;

/** The delivery of one event to one receiver. */
export const DeliveryView = z.object({
  /** Also the `webhook-id` of each attempt. */
  id: z.string(),
  taskId: z.string(),
  configId: z.string(),
  /** The number of the event in the log of its task. */
  event: z.number(),
  state: DeliveryState,
  /** URL without its query; null when the configuration is deleted. */
  url: z.string().nullable(),
  /** State of the configuration, with the reason when it is disabled; null when it is deleted. */
  configState: ConfigState.nullable(),
  configReason: z.string().nullable(),
  attempts: z.number(),
  maxAttempts: z.number().nullable(),
  nextAttemptAt: z.iso.datetime().nullable(),
  lastStatus: z.number().nullable(),
  lastError: z.string().nullable(),
  createdAt: z.iso.datetime(),
  endedAt: z.iso.datetime().nullable(),
});
export type DeliveryView = z.output<typeof DeliveryView>;

export const DeliveryDetail = DeliveryView.extend({
  /** The posted body, byte for byte; null before the first attempt. */
  body: z.string().nullable(),
  tries: z.array(
    z.object({
      number: z.number(),
      endedAt: z.iso.datetime(),
      durationMs: z.number(),
      status: z.number().nullable(),
      error: z.string().nullable(),
      reply: z.string().nullable(),
    }),
  ),
});
export type DeliveryDetail = z.output<typeof DeliveryDetail>;

export const DeliverySummary = z.object({
  from: z.iso.datetime({ offset: true }),
  to: z.iso.datetime({ offset: true }).nullable(),
  counts: z.record(DeliveryState, z.number()),
});
export type DeliverySummary = z.output<typeof DeliverySummary>;

const receiver = {
  url: z.url({ protocol: /^https?$/ }).max(2_048),
  format: z.enum(['v1', 'v0.3', 'task', 'reyn']).default('v1'),
  token: z.string().max(4_096).optional(),
  authentication: z
    .strictObject({ scheme: z.string().min(1).max(64), credentials: z.string().max(4_096).optional() })
    .optional(),
};

/** Body of `POST /api/webhooks/configs`. */
export const NewConfig = z.strictObject({ taskId: z.uuid(), ...receiver });
export type NewConfig = z.output<typeof NewConfig>;

/** Body of `POST /api/webhooks/test`. */
export const TestWebhook = z.strictObject(receiver);
export type TestWebhook = z.output<typeof TestWebhook>;

export const WebhookTestResult = z.object({
  delivered: z.boolean(),
  id: z.string(),
  status: z.number().nullable(),
  error: z.string().nullable(),
  /** Why there is no answer, for a person; null when the receiver answered. */
  detail: z.string().nullable(),
  reply: z.string().nullable(),
  durationMs: z.number(),
});
export type WebhookTestResult = z.output<typeof WebhookTestResult>;
