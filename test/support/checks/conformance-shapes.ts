import { z } from 'zod';

/* Schemas of the v1.0 objects, with all their members and no others (specification section 4). */

const text = z.string().min(1);
const free = z.record(z.string(), z.unknown()).optional();
const uris = z.array(z.string()).optional();
/** A timestamp in ISO 8601, UTC, with milliseconds (section 5.6.1). */
const timestamp = z.string().regex(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const contents = ['text', 'raw', 'url', 'data'] as const;
const Part = z
  .strictObject({
    text: z.string().optional(),
    raw: z.base64().optional(),
    url: text.optional(),
    data: z.json().optional(),
    metadata: free,
    filename: z.string().optional(),
    mediaType: z.string().optional(),
  })
  .refine((part) => contents.filter((name) => name in part).length === 1, { message: 'has not exactly one content' });

const Message = z.strictObject({
  messageId: text,
  contextId: text.optional(),
  taskId: text.optional(),
  role: z.enum(['ROLE_USER', 'ROLE_AGENT']),
  parts: z.array(Part).min(1),
  metadata: free,
  extensions: uris,
  referenceTaskIds: z.array(text).optional(),
});

const Artifact = z.strictObject({
  artifactId: text,
  name: z.string().optional(),
  description: z.string().optional(),
  parts: z.array(Part).min(1),
  metadata: free,
  extensions: uris,
});

const states = [
  'SUBMITTED',
  'WORKING',
  'COMPLETED',
  'FAILED',
  'CANCELED',
  'REJECTED',
  'INPUT_REQUIRED',
  'AUTH_REQUIRED',
];
const Status = z.strictObject({
  state: z.enum(states.map((state) => `TASK_STATE_${state}`)),
  message: Message.optional(),
  timestamp: timestamp.optional(),
});

export const TaskShape = z.strictObject({
  id: text,
  contextId: text,
  status: Status,
  artifacts: z.array(Artifact).optional(),
  history: z.array(Message).optional(),
  metadata: free,
});

const members = z.union([
  z.strictObject({ task: TaskShape }),
  z.strictObject({ message: Message }),
  z.strictObject({ statusUpdate: z.strictObject({ taskId: text, contextId: text, status: Status, metadata: free }) }),
  z.strictObject({
    artifactUpdate: z.strictObject({
      taskId: text,
      contextId: text,
      artifact: Artifact,
      append: z.boolean().optional(),
      lastChunk: z.boolean().optional(),
      metadata: free,
    }),
  }),
]);
export const StreamResponseShape = members;
export const SendResponseShape = z.union([z.strictObject({ task: TaskShape }), z.strictObject({ message: Message })]);
export const ListResponseShape = z.strictObject({
  tasks: z.array(TaskShape),
  nextPageToken: z.string(),
  pageSize: z.number().int(),
  totalSize: z.number().int(),
});
export const PushConfigShape = z.strictObject({
  tenant: z.string().optional(),
  id: text,
  taskId: text,
  url: text,
  token: z.string().optional(),
  authentication: z.strictObject({ scheme: text, credentials: z.string().optional() }).optional(),
});

const Skill = z.strictObject({
  id: text,
  name: text,
  description: text,
  tags: z.array(text).min(1),
  examples: z.array(text).optional(),
  inputModes: z.array(text).optional(),
  outputModes: z.array(text).optional(),
  securityRequirements: z.array(z.unknown()).optional(),
});
const Extension = z.strictObject({
  uri: text,
  description: z.string().optional(),
  required: z.boolean().optional(),
  params: free,
});

export const CardShape = z.strictObject({
  name: text,
  description: text,
  supportedInterfaces: z
    .array(
      z.strictObject({
        url: text,
        protocolBinding: z.enum(['JSONRPC', 'GRPC', 'HTTP+JSON']),
        protocolVersion: z.literal('1.0'),
        tenant: z.string().optional(),
      }),
    )
    .min(1),
  provider: z.strictObject({ organization: text, url: text }).optional(),
  version: text,
  documentationUrl: text.optional(),
  capabilities: z.strictObject({
    streaming: z.boolean().optional(),
    pushNotifications: z.boolean().optional(),
    extensions: z.array(Extension).optional(),
    extendedAgentCard: z.boolean().optional(),
  }),
  securitySchemes: z.record(z.string(), z.unknown()).optional(),
  securityRequirements: z.array(z.unknown()).optional(),
  defaultInputModes: z.array(text).min(1),
  defaultOutputModes: z.array(text).min(1),
  skills: z.array(Skill).min(1),
  signatures: z.array(z.strictObject({ protected: text, signature: text, header: free })).optional(),
  iconUrl: text.optional(),
});
