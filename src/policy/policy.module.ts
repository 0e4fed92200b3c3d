import { Module, type OnModuleInit } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../audit/audit.module.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { PublicUrl } from '../platform/http/public-url.js';
import { SafeFetch } from '../platform/http/outbound/safe-fetch.js';
import { HealthService } from '../platform/telemetry/health.service.js';
import { AuthGuard } from './auth/auth.guard.js';
import { AuthService } from './auth.service.js';
import { Bootstrap } from './bootstrap.js';
import { ContextService } from './context.service.js';
import { DeclaredOrgs } from './declared-orgs.js';
import { CredentialStore } from './auth/credential.store.js';
import { KeyController, OrgController } from './auth/org.controller.js';
import {
  ApiKeyEntity,
  MemberEntity,
  OrgDomainEntity,
  OrgEntity,
  OrgSecretEntity,
  RevokedTokenEntity,
} from './auth/org.entity.js';
import { OrgActs } from './auth/org-acts.js';
import { OrgData } from './org-data.js';
import { OrgDataStore } from './auth/org-data.store.js';
import { OrgPurgeSweeper } from './auth/org-purge.sweeper.js';
import { OrgDirectory } from './org-directory.js';
import { OrgDomainService } from './auth/org-domains.service.js';
import { OrgService } from './org.service.js';
import { TokenRefusals } from './auth/token-refusals.js';
import { ResealSweeper } from './auth/reseal.sweeper.js';
import { RevocationSweeper } from './auth/revocation.sweeper.js';
import { TokenVerifier } from './auth/token-verifier.js';
import { OperatorGate } from './operator-gate.js';
import { LimitsService } from './limits.service.js';
import { Nesting } from './nesting.js';
import { PolicyController } from './admin/policy.controller.js';
import { PolicyDecider } from './decisions/policy-decider.js';
import { PolicyEntity, PolicyVersionEntity } from './admin/policy.entity.js';
import { PolicyService } from './policy.service.js';
import { PolicyStore } from './admin/policy.store.js';
import { ToolCallsStore } from './limits/tool-calls.store.js';
import { ToolLimits } from './tool-limits.js';

/** Module 5: authentication, authorisation and rate limits. */
@Module({
  imports: [
    AuditModule,
    PassportModule,
    TypeOrmModule.forFeature([
      OrgEntity,
      OrgDomainEntity,
      OrgSecretEntity,
      MemberEntity,
      ApiKeyEntity,
      RevokedTokenEntity,
      PolicyEntity,
      PolicyVersionEntity,
    ]),
  ],
  controllers: [PolicyController, OrgController, KeyController],
  providers: [
    PolicyService,
    PolicyDecider,
    PolicyStore,
    OrgService,
    OrgDomainService,
    OrgDirectory,
    OrgActs,
    AuthService,
    TokenRefusals,
    ContextService,
    LimitsService,
    Nesting,
    ToolLimits,
    ToolCallsStore,
    OperatorGate,
    CredentialStore,
    Bootstrap,
    DeclaredOrgs,
    ResealSweeper,
    RevocationSweeper,
    OrgData,
    OrgDataStore,
    OrgPurgeSweeper,
    {
      provide: TokenVerifier,
      useFactory: (settings: Settings, store: CredentialStore, safeFetch: SafeFetch, publicUrl: PublicUrl) =>
        new TokenVerifier(settings, store, safeFetch, publicUrl),
      inject: [SETTINGS, CredentialStore, SafeFetch, PublicUrl],
    },
    { provide: APP_GUARD, useClass: AuthGuard },
  ],
  exports: [
    ToolLimits,
    Nesting,
    PolicyService,
    AuthService,
    ContextService,
    OrgService,
    OrgDirectory,
    OrgData,
    Bootstrap,
  ],
})
export class PolicyModule implements OnModuleInit {
  constructor(
    private readonly verbs: VerbBus,
    private readonly decider: PolicyDecider,
    private readonly health: HealthService,
  ) {}

  onModuleInit(): void {
    this.verbs.decideWith((act) => this.decider.decide(act));
    const check = () =>
      this.decider.engine.healthy
        ? { status: 'ok' as const }
        : { status: 'down' as const, detail: 'the policy engine stopped; every call is denied until a restart' };
    this.health.add({ name: 'policy', run: () => Promise.resolve(check()) });
  }
}
