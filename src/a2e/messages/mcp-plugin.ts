import { Injectable } from '@nestjs/common';
import type { Subject } from '../../protocol/a2e/errors.js';
import type { RequestType } from '../../protocol/a2e/messages.js';
import type { A2eHandler, A2ePlugin } from './a2e-call.js';
import { FeatureMessages } from './feature-messages.js';
import { ServerMessages } from './server-messages.js';
import { ToolMessages } from './tool-messages.js';

/** Plugin with the messages of the MCP bridge (AE-69). */
@Injectable()
export class McpPlugin implements A2ePlugin {
  readonly name = 'mcp';
  readonly priority = 10;
  readonly handlers: ReadonlyMap<string, A2eHandler>;

  constructor(servers: ServerMessages, features: FeatureMessages, tools: ToolMessages) {
    const about = (subject: Subject, answer: A2eHandler['answer']): A2eHandler => ({ subject, answer });
    const table: Record<RequestType, A2eHandler> = {
      'mcp/server/register/req': about('server', (call) => servers.register(call)),
      'mcp/server/list/req': about('server', (call) => servers.list(call)),
      'mcp/server/unregister/req': about('server', (call) => servers.unregister(call)),
      'mcp/server/push': about('server', (call) => servers.sendNotification(call)),
      'mcp/resource/list/req': about('resource', (call) => features.listResources(call)),
      'mcp/resource/read/req': about('resource', (call) => features.readResource(call)),
      'mcp/resource/subscribe/req': about('resource', (call) => features.subscribeResource(call)),
      'mcp/prompt/list/req': about('prompt', (call) => features.listPrompts(call)),
      'mcp/prompt/get/req': about('prompt', (call) => features.getPrompt(call)),
      'mcp/roots/list/req': about('server', (call) => servers.listRoots(call)),
      'mcp/call_tool': about('tool', (call) => tools.callTool(call)),
    };
    this.handlers = new Map(Object.entries(table));
  }
}
