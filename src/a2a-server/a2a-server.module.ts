import { Module, type OnModuleInit } from '@nestjs/common';
import { ContinuationsModule } from '../continuations/continuations.module.js';
import { FrontDoor } from '../platform/http/server/front-door.js';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { AgentDispatch } from './agent-dispatch.js';
import { CardDoor } from './card.door.js';
import { GrpcServer } from './grpc-server.js';
import { GrpcDoor } from './grpc.door.js';
import { JsonRpcDoor } from './json-rpc.door.js';
import { Operations } from './operations.js';
import { WakeDoor } from './wake.door.js';
import { Replies } from './reply.js';
import { RestDoor } from './rest.door.js';
import { RunDoor } from './run.door.js';
import { A2aRequests } from './a2a-requests.js';

/** Module 12: the doors for A2A clients. */
@Module({
  imports: [PolicyModule, RegistryModule, TasksModule, WebhooksModule, ContinuationsModule],
  providers: [
    CardDoor,
    JsonRpcDoor,
    RestDoor,
    RunDoor,
    WakeDoor,
    GrpcDoor,
    GrpcServer,
    Operations,
    Replies,
    A2aRequests,
    AgentDispatch,
  ],
})
export class A2AServerModule implements OnModuleInit {
  constructor(
    private readonly front: FrontDoor,
    private readonly cards: CardDoor,
    private readonly rpc: JsonRpcDoor,
    private readonly rest: RestDoor,
    private readonly runs: RunDoor,
    private readonly wakes: WakeDoor,
  ) {}

  /**
   * Adds the routes of all doors. Cards come first, because operation routes would match their paths; then the
   * busiest routes.
   */
  onModuleInit(): void {
    for (const door of [this.cards, this.rpc, this.rest, this.runs, this.wakes])
      for (const route of door.routes()) this.front.add(route);
  }
}
