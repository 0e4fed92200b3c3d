import { Inject, Module, type OnModuleInit } from '@nestjs/common';
import { AuditModule } from '../audit/audit.module.js';
import { ContinuationsModule } from '../continuations/continuations.module.js';
import type { HotRoute } from '../platform/http/http.types.js';
import { FrontDoor } from '../platform/http/server/front-door.js';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { UpstreamsModule } from '../upstreams/upstreams.module.js';
import { WebhooksModule } from '../webhooks/webhooks.module.js';
import { AgentDispatch } from './agent-dispatch.js';
import { CardDoor } from './card.door.js';
import { DirectActions } from './direct-actions.js';
import { GrpcServer } from './grpc-server.js';
import { GrpcDoor } from './grpc.door.js';
import { JsonRpcDoor } from './json-rpc.door.js';
import { Operations } from './operations.js';
import { WakeDoor } from './wake.door.js';
import { Replies } from './reply.js';
import { RestDoor } from './rest.door.js';
import { RunDoor } from './run.door.js';
import { A2aRequests } from './a2a-requests.js';

/**
 * Doors in the order of their routes. Cards come first, because operation routes would match their paths; then the
 * busiest routes.
 */
const doors = [CardDoor, JsonRpcDoor, RestDoor, RunDoor, WakeDoor];

/** Token of the instances of `doors`, in the same order. */
const DOORS = Symbol('the doors for A2A clients');

/** Module 13: the doors for A2A clients. */
@Module({
  imports: [
    AuditModule,
    PolicyModule,
    RegistryModule,
    TasksModule,
    UpstreamsModule,
    WebhooksModule,
    ContinuationsModule,
  ],
  providers: [
    ...doors,
    { provide: DOORS, useFactory: (...instances: unknown[]) => instances, inject: doors },
    GrpcDoor,
    GrpcServer,
    Operations,
    Replies,
    A2aRequests,
    AgentDispatch,
    DirectActions,
  ],
})
export class A2AServerModule implements OnModuleInit {
  constructor(
    private readonly front: FrontDoor,
    @Inject(DOORS) private readonly doors: readonly { routes(): HotRoute[] }[],
  ) {}

  onModuleInit(): void {
    for (const door of this.doors) for (const route of door.routes()) this.front.add(route);
  }
}
