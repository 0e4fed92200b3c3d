import { Module, type OnModuleInit } from '@nestjs/common';
import { AuditModule } from '../audit/audit.module.js';
import { FrontDoor } from '../platform/http/server/front-door.js';
import { SocketDoor } from '../platform/http/server/socket-door.js';
import { PolicyModule } from '../policy/policy.module.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { A2eDoor } from './sockets/a2e.door.js';
import { AgentServers } from './sockets/agent-servers.js';
import { AgentSockets } from './sockets/agent-sockets.js';
import { FeatureMessages } from './messages/feature-messages.js';
import { McpPlugin } from './messages/mcp-plugin.js';
import { MessageAudit } from './messages/message-audit.js';
import { MessageDispatcher } from './messages/message-dispatcher.js';
import { ServerMessages } from './messages/server-messages.js';
import { ServersInSight } from './messages/servers-in-sight.js';
import { ToolMessages } from './messages/tool-messages.js';

/** Module 15: the door for agents that speak A2E. They use MCP servers by messages. */
@Module({
  imports: [AuditModule, PolicyModule, UpstreamsModule],
  providers: [
    A2eDoor,
    AgentServers,
    AgentSockets,
    MessageDispatcher,
    MessageAudit,
    McpPlugin,
    ServerMessages,
    FeatureMessages,
    ToolMessages,
    ServersInSight,
  ],
})
export class A2eModule implements OnModuleInit {
  constructor(
    private readonly front: FrontDoor,
    private readonly sockets: SocketDoor,
    private readonly door: A2eDoor,
  ) {}

  onModuleInit(): void {
    this.front.add(this.door.route());
    this.sockets.add(this.door.socketRoute());
  }
}
