/**
 * The dialects of a stub agent. This file encodes neutral objects for each dialect (A2A v1.0 section 4, v0.3 section 6
 * and its proto).
 */
export type Dialect = 'v1-jsonrpc' | 'v1-rest' | 'v03-jsonrpc' | 'v03-rest';
export type Wire = Record<string, unknown>;

const knownStates = [
  'submitted',
  'working',
  'completed',
  'failed',
  'canceled',
  'rejected',
  'input-required',
  'auth-required',
] as const;
/** Any other word is sent unchanged: a remote agent may invent states. */
export type State = (typeof knownStates)[number] | (string & {});

export type Part =
  | { text: string }
  | { data: unknown }
  | { raw: string; mediaType?: string; filename?: string }
  | { url: string; mediaType?: string; filename?: string }
  /** A part of a kind that A2A does not have; sent unchanged. */
  | { kind: string; activity: unknown };

export interface StubArtifact {
  artifactId: string;
  parts: Part[];
}

export interface TaskView {
  id: string;
  contextId: string;
  state: State;
  statusParts?: Part[];
  artifacts: StubArtifact[];
}

export type StreamPayload =
  | { task: State }
  | { message: Part[] }
  | { status: State; parts?: Part[] }
  | { artifact: string; parts: Part[]; append?: boolean; lastChunk?: boolean };

/** The object format: v0.3 REST is ProtoJSON, v0.3 JSON-RPC is not. */
type Shape = 'v1' | 'v03' | 'v03-proto';

function shapeOf(dialect: Dialect): Shape {
  if (dialect === 'v03-jsonrpc') return 'v03';
  return dialect === 'v03-rest' ? 'v03-proto' : 'v1';
}

export function isJsonRpc(dialect: Dialect): boolean {
  return dialect.endsWith('jsonrpc');
}

export function isTerminal(state: State): boolean {
  return ['completed', 'failed', 'canceled', 'rejected'].includes(state);
}

function encodeState(shape: Shape, state: State): string {
  if (shape === 'v03' || !(knownStates as readonly string[]).includes(state)) return state;
  if (shape === 'v03-proto' && state === 'canceled') return 'TASK_STATE_CANCELLED';
  return `TASK_STATE_${state.toUpperCase().replace('-', '_')}`;
}

function encodePart(shape: Shape, part: Part): Wire {
  if (shape === 'v1' || 'kind' in part) return { ...part };
  if ('text' in part) return shape === 'v03' ? { kind: 'text', text: part.text } : { text: part.text };
  if ('data' in part) return shape === 'v03' ? { kind: 'data', data: part.data } : { data: { data: part.data } };
  const isBytes = 'raw' in part;
  const content = isBytes ? part.raw : part.url;
  if (shape === 'v03-proto') {
    return { file: { [isBytes ? 'fileWithBytes' : 'fileWithUri']: content, mimeType: part.mediaType } };
  }
  return {
    kind: 'file',
    file: { [isBytes ? 'bytes' : 'uri']: content, name: part.filename, mimeType: part.mediaType },
  };
}

function encodeMessage(shape: Shape, task: TaskView, parts: Part[], bare: boolean): Wire {
  return {
    ...(shape === 'v03' ? { kind: 'message', role: 'agent' } : { role: 'ROLE_AGENT' }),
    messageId: `${task.id}-${bare ? 'message' : task.state}`,
    contextId: task.contextId,
    ...(bare ? {} : { taskId: task.id }),
    [shape === 'v03-proto' ? 'content' : 'parts']: parts.map((part) => encodePart(shape, part)),
  };
}

function encodeStatus(shape: Shape, task: TaskView): Wire {
  return {
    state: encodeState(shape, task.state),
    ...(task.statusParts && { message: encodeMessage(shape, task, task.statusParts, false) }),
    timestamp: new Date().toISOString(),
  };
}

function encodeArtifact(shape: Shape, artifact: StubArtifact): Wire {
  return { artifactId: artifact.artifactId, parts: artifact.parts.map((part) => encodePart(shape, part)) };
}

/** Encodes a Task in a dialect. */
export function encodeTask(dialect: Dialect, task: TaskView): Wire {
  const shape = shapeOf(dialect);
  return {
    ...(shape === 'v03' && { kind: 'task' }),
    id: task.id,
    contextId: task.contextId,
    status: encodeStatus(shape, task),
    artifacts: task.artifacts.map((artifact) => encodeArtifact(shape, artifact)),
  };
}

/** Encodes the result of a send that created a task: bare in v0.3 JSON-RPC, wrapped elsewhere. */
export function encodeSendTask(dialect: Dialect, task: TaskView): Wire {
  return dialect === 'v03-jsonrpc' ? encodeTask(dialect, task) : { task: encodeTask(dialect, task) };
}

/** Encodes the result of a send that answers with a Message only. */
export function encodeSendMessage(dialect: Dialect, task: TaskView, parts: Part[]): Wire {
  const message = encodeMessage(shapeOf(dialect), task, parts, true);
  return dialect === 'v03-jsonrpc' ? message : { message };
}

/** Applies a stream event to the task, so that polls and streams agree. */
export function applyPayload(task: TaskView, payload: StreamPayload): void {
  if ('task' in payload) task.state = payload.task;
  else if ('status' in payload) {
    task.state = payload.status;
    task.statusParts = payload.parts;
  } else if ('artifact' in payload) {
    const known = task.artifacts.find((artifact) => artifact.artifactId === payload.artifact);
    if (known && payload.append) known.parts.push(...payload.parts);
    else if (known) known.parts = [...payload.parts];
    else task.artifacts.push({ artifactId: payload.artifact, parts: [...payload.parts] });
  }
}

/** Encodes one stream event of `task`, after `applyPayload`. */
export function encodePayload(dialect: Dialect, task: TaskView, payload: StreamPayload): Wire {
  const shape = shapeOf(dialect);
  if ('task' in payload) return encodeSendTask(dialect, task);
  if ('message' in payload) return encodeSendMessage(dialect, task, payload.message);
  const about = { taskId: task.id, contextId: task.contextId };
  if ('status' in payload) {
    const ends = isTerminal(payload.status) || payload.status === 'input-required';
    const update = { ...about, status: encodeStatus(shape, task), ...(shape !== 'v1' && { final: ends }) };
    return shape === 'v03' ? { kind: 'status-update', ...update } : { statusUpdate: update };
  }
  const artifact = encodeArtifact(shape, { artifactId: payload.artifact, parts: payload.parts });
  const update = { ...about, artifact, append: payload.append ?? false, lastChunk: payload.lastChunk ?? false };
  return shape === 'v03' ? { kind: 'artifact-update', ...update } : { artifactUpdate: update };
}

const httpStatuses: Record<number, number> = { [-32001]: 404, [-32601]: 404, [-32603]: 500, [-32006]: 500 };
const grpcNames: Record<number, string> = { 400: 'INVALID_ARGUMENT', 404: 'NOT_FOUND', 500: 'INTERNAL' };

/** Returns the HTTP status and body of an error. JSON-RPC errors have status 200. */
export function encodeError(
  dialect: Dialect,
  id: unknown,
  error: { code: number; message: string; data?: unknown },
): { status: number; body: Wire } {
  if (isJsonRpc(dialect)) return { status: 200, body: { jsonrpc: '2.0', id: id ?? null, error } };
  const status = httpStatuses[error.code] ?? 400;
  if (dialect === 'v03-rest') return { status, body: { ...error } };
  const details = Array.isArray(error.data) ? (error.data as unknown[]) : [];
  return { status, body: { error: { code: status, status: grpcNames[status], message: error.message, details } } };
}
