import type { JsonObject } from '../kernel/json.js';
import { declaresTasks, tasksExtension, type ServerTask } from '../protocol/mcp/server-task.js';
import type { RegisteredServer } from './registered-server.types.js';

/** Accepts a task that a server returns for a tool call, and produces the answer of the call. */
export interface TaskTaker {
  /** Called before anything is sent. Throws when no more tasks can be accepted. */
  admit(): void;
  take(task: ServerTask): Promise<JsonObject>;
}

/** Task at an MCP server, with all that is needed to query it again. */
export interface TaskAtServer {
  /** Id of the row of the server. */
  readonly server: string;
  readonly taskId: string;
  /** Canonical tool name that the policy decided on. */
  readonly canonical: string;
  readonly args: JsonObject;
  /** Client capabilities that the call declared: what its caller can be asked for. */
  readonly capabilities: JsonObject;
}

/**
 * Returns whether a server may answer with a task: it speaks the 2026-07-28 revision and declares tasks. The gateway
 * announces that it accepts tasks only to such a server.
 */
export function mayAnswerByTask({ row }: RegisteredServer): boolean {
  const { protocolVersion, capabilities } = row.offer;
  return protocolVersion >= '2026' && declaresTasks(capabilities);
}

/** Adds the tasks extension to the capabilities of a request (ext-tasks, capability negotiation). */
export function withTasks(capabilities: JsonObject | undefined): JsonObject {
  return { ...capabilities, extensions: { [tasksExtension]: {} } };
}
