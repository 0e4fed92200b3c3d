import { z } from 'zod';
import { dialects } from '../../protocol/a2a/dialects.js';
import type { Part } from '../../protocol/a2a/model.js';

/** Most events in one report. */
const maxEvents = 50;
const maxParts = 100;

const EventId = z.string().min(1).max(128);
const metadata = z.record(z.string(), z.unknown()).optional();

/** Parts in the spelling of v1.0 or of an older version; the decoder of the 0.3 dialect accepts both. */
const Parts = z
  .array(z.looseObject({}))
  .min(1)
  .max(maxParts)
  .transform((parts, context): Part[] => {
    const message = { messageId: 'outside', role: 'user', parts };
    const decoded = dialects['0.3'].decode('message/send', { message });
    if (decoded.ok) return decoded.operation.name === 'SendMessage' ? decoded.operation.params.message.parts : [];
    for (const { field, description } of decoded.violations ?? [])
      context.addIssue({ code: 'custom', message: description, path: pathIn('message.parts', field) });
    return z.NEVER;
  });

/** The path of a violation below its parent: `message.parts[0].text` below `message.parts` gives `0`, `text`. */
function pathIn(parent: string, field: string): string[] {
  return field
    .slice(parent.length)
    .split(/[.[\]]+/)
    .filter((name) => name !== '');
}

const Message = z.strictObject({ parts: Parts, metadata });
const Artifact = z.strictObject({
  artifactId: z.string().min(1).max(256).optional(),
  name: z.string().max(256).optional(),
  description: z.string().max(4_096).optional(),
  parts: Parts,
  metadata,
});
/** A choice of a question. A plain text is its own id and label. */
const Choice = z.union([
  z
    .string()
    .min(1)
    .max(256)
    .transform((text) => ({ id: text, label: text })),
  z.strictObject({
    id: z.string().min(1).max(256),
    label: z.string().max(1_024),
    hotkey: z.string().max(32).optional(),
  }),
]);

/** The content of an event, as a plain text or as a message. */
const content = { text: z.string().min(1).optional(), message: Message.optional() };

function eventWith<Id extends z.ZodType>(id: Id) {
  const head = { id, leaseEpoch: z.number().int().min(0).optional() };
  return z.discriminatedUnion('type', [
    z.strictObject({ ...head, type: z.literal('progress'), ...content }),
    z.strictObject({ ...head, type: z.literal('pause'), ...content }),
    z.strictObject({ ...head, type: z.literal('reject'), ...content }),
    z.strictObject({
      ...head,
      type: z.literal('artifact'),
      artifact: Artifact,
      append: z.boolean().optional(),
      lastChunk: z.boolean().optional(),
    }),
    z
      .strictObject({
        ...head,
        type: z.literal('ask'),
        ...content,
        kind: z.string().max(64).optional(),
        choices: z.array(Choice).max(100).optional(),
        detail: z.unknown().optional(),
      })
      .refine(({ text, message }) => text !== undefined || message !== undefined, {
        message: 'has no question: set text or message',
      }),
    z.strictObject({
      ...head,
      type: z.literal('complete'),
      ...content,
      artifacts: z.array(Artifact).max(100).optional(),
    }),
    z.strictObject({ ...head, type: z.literal('fail'), ...content, error: z.string().min(1).max(4_000).optional() }),
    z.strictObject({ ...head, type: z.literal('heartbeat') }),
  ]);
}

const Event = eventWith(EventId);
/** One event that an external worker reports for a task. */
export type ExecutionEvent = z.output<typeof Event>;

const Events = z.array(Event).min(1).max(maxEvents);

/**
 * JSON schema of a report for the API description. The body itself is parsed below, so that an error names the event it
 * is in.
 */
const shape = z.toJSONSchema(z.union([Event, Events]), { io: 'input', target: 'openapi-3.0' });

/** The body of a report: one event, or a list of events that is applied completely or not at all. */
export const ExecutionReport = z
  .unknown()
  .meta(shape)
  .transform((body, context): ExecutionEvent[] => {
    const read = Array.isArray(body) ? Events.safeParse(body) : Event.safeParse(body);
    if (read.success) return [read.data].flat();
    for (const { message, path } of read.error.issues) context.addIssue({ code: 'custom', message, path });
    return z.NEVER;
  });

const Inline = z.array(eventWith(EventId.optional())).max(maxEvents);

/** The events in the answer to a call; none in an answer that is not a report. Throws a ZodError for invalid events. */
export function inlineEvents(answer: unknown, callId: string): ExecutionEvent[] {
  if (typeof answer !== 'object' || answer === null) return [];
  const list = 'events' in answer ? answer.events : 'type' in answer ? [answer] : [];
  return Inline.parse(list).map((event, index) => ({ ...event, id: event.id ?? `${callId}-${index}` }));
}

export const ReportView = z.object({ taskId: z.string(), state: z.string(), seq: z.number().int() });
export type ReportView = z.output<typeof ReportView>;
