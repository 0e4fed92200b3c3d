import { Module, type OnModuleInit } from '@nestjs/common';
import { APP_GUARD } from '@nestjs/core';
import { PassportModule } from '@nestjs/passport';
import { TypeOrmModule } from '@nestjs/typeorm';
import { AuditModule } from '../audit/audit.module.js';
import { VerbBus } from '../kernel/verb-bus.js';
import { FrontDoor } from '../platform/http/server/front-door.js';
import { HealthService } from '../platform/telemetry/health.service.js';
import { AuthGuard } from './auth/auth.guard.js';
import { AuthService } from './auth.service.js';
import { Bootstrap } from './bootstrap.js';
import { ContextService } from './context.service.js';
import { DeclaredOrgs } from './declared-orgs.js';
import { CredentialStore } from './auth/credential.store.js';
import { KeyController, OrgController } from './orgs/org.controller.js';
import {
  ApiKeyEntity,
  MemberEntity,
  OrgDomainEntity,
  OrgEntity,
  OrgSecretEntity,
  RevokedTokenEntity,
} from './orgs/org.entity.js';
import { OrgData } from './org-data.js';
import { OrgDataStore } from './orgs/org-data.store.js';
import { OrgPurgeSweeper } from './orgs/org-purge.sweeper.js';
import { OrgDirectory } from './org-directory.js';
import { OrgDomainService } from './orgs/org-domains.service.js';
import { OrgService } from './org.service.js';
import { AdminTokenFile } from './orgs/admin-token-file.js';
import { ApiKeyService } from './orgs/api-key.service.js';
import { ApiKeyStore } from './orgs/api-key.store.js';
import { MemberService } from './orgs/member.service.js';
import { MemberStore } from './orgs/member.store.js';
import { OrgStore } from './orgs/org.store.js';
import { TokenSecretService } from './orgs/token-secret.service.js';
import { TokenSecretStore } from './orgs/token-secret.store.js';
import { IdentityFinder } from './auth/identity-finder.js';
import { PolicyTestService } from './policy-test.service.js';
import { TokenRefusals } from './auth/token-refusals.js';
import { ResealSweeper } from './auth/reseal.sweeper.js';
import { RevocationSweeper } from './orgs/revocation.sweeper.js';
import { AccessTokens } from './auth/access-tokens.js';
import { TokenDoor } from './token.door.js';
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
import { TrustQuotaStore } from './trust/trust-quota.store.js';
import { TrustQuotas } from './trust-quotas.js';
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
    PolicyTestService,
    PolicyDecider,
    PolicyStore,
    OrgService,
    OrgDomainService,
    OrgDirectory,
    OrgStore,
    MemberService,
    MemberStore,
    ApiKeyService,
    ApiKeyStore,
    TokenSecretService,
    TokenSecretStore,
    AdminTokenFile,
    AuthService,
    IdentityFinder,
    TokenVerifier,
    AccessTokens,
    TokenDoor,
    TokenRefusals,
    ContextService,
    LimitsService,
    Nesting,
    ToolLimits,
    ToolCallsStore,
    TrustQuotas,
    TrustQuotaStore,
    OperatorGate,
    CredentialStore,
    Bootstrap,
    DeclaredOrgs,
    ResealSweeper,
    RevocationSweeper,
    OrgData,
    OrgDataStore,
    OrgPurgeSweeper,
    { provide: APP_GUARD, useClass: AuthGuard },
  ],
  exports: [
    ToolLimits,
    TrustQuotas,
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
    private readonly front: FrontDoor,
    private readonly tokens: TokenDoor,
  ) {}

  onModuleInit(): void {
    for (const route of this.tokens.routes()) this.front.add(route);
    this.verbs.decideWith((act) => this.decider.decideAct(act));
    const check = () =>
      this.decider.engine.healthy
        ? { status: 'ok' as const }
        : { status: 'down' as const, detail: 'the policy engine stopped; every call is denied until a restart' };
    this.health.add({ name: 'policy', run: () => Promise.resolve(check()) });
  }
}
