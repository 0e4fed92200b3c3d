import { Module, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { parseAllowList } from '../platform/http/outbound/address.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { PolicyModule } from '../policy/policy.module.js';
import { RegistryModule } from '../registry/registry.module.js';
import { A2AClientService } from './a2a-client.service.js';
import { AgentProofs } from '../registry/agent-proofs.js';
import { AgentRecheck } from '../registry/agent-recheck.js';
import { AgentOperations } from './requests/agent-operations.js';
import { Delegation } from './requests/delegation.js';
import { DispatchController } from './dispatch/dispatch.controller.js';
import { DispatchExplanationService } from './dispatch/dispatch-explanation.service.js';
import { DispatchService } from './dispatch/dispatch.service.js';
import { RemoteAgents } from './requests/remote-agents.js';
import { RemoteCredentials } from './requests/remote-credentials.js';
import { BridgeTransport } from './transports/bridge.transport.js';
import { SdkTransport } from './transports/sdk.transport.js';

/** Module for calls to remote A2A agents: the only way out to one. */
@Module({
  imports: [PolicyModule, RegistryModule],
  controllers: [DispatchController],
  providers: [
    A2AClientService,
    DispatchService,
    DispatchExplanationService,
    Delegation,
    RemoteAgents,
    AgentOperations,
    AgentRecheck,
    {
      provide: RemoteCredentials,
      useFactory: (client: SafeFetch) => new RemoteCredentials(client),
      inject: [SafeFetch],
    },
    { provide: BridgeTransport, useFactory: (client: SafeFetch) => new BridgeTransport(client), inject: [SafeFetch] },
    { provide: SdkTransport, useFactory: sdkTransport, inject: [SafeFetch, SETTINGS] },
  ],
  exports: [A2AClientService],
})
export class A2AClientModule implements OnModuleInit, OnApplicationShutdown {
  constructor(
    private readonly sdk: SdkTransport,
    private readonly proofs: AgentProofs,
    private readonly credentials: RemoteCredentials,
  ) {}

  onModuleInit(): void {
    this.proofs.from((agentId, credential) => this.credentials.headers(agentId, credential));
  }

  onApplicationShutdown(): void {
    this.sdk.close();
  }
}

/**
 * Creates the SDK transport with the outbound policy of the safe client: gRPC opens its own connections, so it needs
 * the same rules.
 */
function sdkTransport(client: SafeFetch, settings: Settings): SdkTransport {
  const allow = parseAllowList(settings.RIALTO_OUTBOUND_ALLOW);
  return new SdkTransport(client, { allow, httpsOnly: settings.production });
}
