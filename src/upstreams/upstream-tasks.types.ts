import type { JsonObject } from '../kernel/json.js';
import { declaresTasks, tasksExtension, type ServerTask } from '../protocol/mcp/server-task.js';
import type { RegisteredServer } from './registered-server.types.js';

/** Takes a task that a server answers a call of its tool with, and gives the answer of the call in its place. */
export interface TaskTaker {
  /** Before anything is sent: throws what keeps one more task from being taken. */
  admit(): void;
  take(task: ServerTask): Promise<JsonObject>;
}

/** A task at an MCP server: all that is needed to ask for it again. */
export interface TaskAtServer {
  /** The id of the row of the server. */
  readonly server: string;
  readonly taskId: string;
  /** By which its call was decided. */
  readonly canonical: string;
  readonly args: JsonObject;
  /** What its caller can be asked for, as the call declared it. */
  readonly capabilities: JsonObject;
}

/** Whether a server may answer by a task: only one of the 2026-07-28 revision that says so, to whom we say that we take them. */
export function mayAnswerByTask({ row }: RegisteredServer): boolean {
  const { protocolVersion, capabilities } = row.offer;
  return protocolVersion >= '2026' && declaresTasks(capabilities);
}

/** What a request declares that is about a task, or may become one (ext-tasks, capability negotiation). */
export function withTasks(capabilities: JsonObject | undefined): JsonObject {
  return { ...capabilities, extensions: { [tasksExtension]: {} } };
}
