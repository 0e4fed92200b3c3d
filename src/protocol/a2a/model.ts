import type { Json, JsonObject } from '../../kernel/json.js';
import type { TaskState } from './states.js';

/*
 * The canonical model: A2A v1.0 in its JSON form (ProtoJSON of a2a.proto, specification section 4). All code behind the
 * doors uses these shapes, for every version that a caller or a remote agent uses. `?` is optional; times are ISO 8601
 * in UTC.
 */

export type Role = 'ROLE_USER' | 'ROLE_AGENT' | 'ROLE_UNSPECIFIED';

/** Exactly one of text, raw (base64 bytes), url and data (section 4.1.6). */
export interface Part {
  text?: string;
  raw?: string;
  url?: string;
  data?: Json;
  metadata?: JsonObject;
  filename?: string;
  mediaType?: string;
}

export interface Message {
  messageId: string;
  contextId?: string;
  taskId?: string;
  role: Role;
  parts: Part[];
  metadata?: JsonObject;
  extensions?: string[];
  referenceTaskIds?: string[];
}

export interface Artifact {
  /** Unique within the task. */
  artifactId: string;
  name?: string;
  description?: string;
  parts: Part[];
  metadata?: JsonObject;
  extensions?: string[];
}

export interface TaskStatus {
  state: TaskState;
  message?: Message;
  timestamp?: string;
}

export interface Task {
  id: string;
  contextId?: string;
  status: TaskStatus;
  artifacts?: Artifact[];
  history?: Message[];
  metadata?: JsonObject;
}

export interface TaskStatusUpdateEvent {
  taskId: string;
  contextId: string;
  status: TaskStatus;
  metadata?: JsonObject;
}

export interface TaskArtifactUpdateEvent {
  taskId: string;
  contextId: string;
  artifact: Artifact;
  /** True when the parts are added to the end of the artifact with the same id. */
  append?: boolean;
  lastChunk?: boolean;
  metadata?: JsonObject;
}

/** One event of a stream, and the body of a push notification (section 3.2.3): exactly one member. */
export type StreamResponse =
  | { task: Task }
  | { message: Message }
  | { statusUpdate: TaskStatusUpdateEvent }
  | { artifactUpdate: TaskArtifactUpdateEvent };

/** `JSONRPC`, `HTTP+JSON`, `GRPC`, or the URI of a custom binding (section 5.8). */
export type Binding = 'JSONRPC' | 'HTTP+JSON' | 'GRPC' | (string & {});
export type A2aVersion = '1.0' | '0.3';

export interface AgentInterface {
  url: string;
  protocolBinding: Binding;
  protocolVersion: A2aVersion;
  /** An opaque routing key that callers repeat in each request. */
  tenant?: string;
}

export interface AgentSkill {
  id: string;
  name: string;
  description: string;
  tags: string[];
  examples?: string[];
  inputModes?: string[];
  outputModes?: string[];
  securityRequirements?: SecurityRequirement[];
  /** JSON Schema of the arguments. It is not part of the specification and is kept verbatim (RE-11). */
  inputSchema?: Json;
}

export interface AgentCapabilities {
  streaming?: boolean;
  pushNotifications?: boolean;
  extensions?: AgentExtension[];
  extendedAgentCard?: boolean;
}

export interface AgentExtension {
  uri: string;
  description?: string;
  required?: boolean;
  params?: JsonObject;
}

/** A list of requirements are alternatives; within one requirement all schemes are needed. */
export interface SecurityRequirement {
  schemes: Record<string, { list: string[] }>;
}

/** Exactly one wrapper key (section 4.5). */
export interface SecurityScheme {
  apiKeySecurityScheme?: JsonObject;
  httpAuthSecurityScheme?: JsonObject;
  oauth2SecurityScheme?: JsonObject;
  openIdConnectSecurityScheme?: JsonObject;
  mtlsSecurityScheme?: JsonObject;
}

export interface AgentProvider {
  organization: string;
  url: string;
}

/** A JWS signature over the canonical card (section 8.4). */
export interface AgentCardSignature {
  protected: string;
  signature: string;
  header?: JsonObject;
}

export interface AgentCard {
  name: string;
  description: string;
  supportedInterfaces: AgentInterface[];
  provider?: AgentProvider;
  version: string;
  documentationUrl?: string;
  capabilities: AgentCapabilities;
  securitySchemes?: Record<string, SecurityScheme>;
  securityRequirements?: SecurityRequirement[];
  defaultInputModes: string[];
  defaultOutputModes: string[];
  skills: AgentSkill[];
  signatures?: AgentCardSignature[];
  iconUrl?: string;
}
