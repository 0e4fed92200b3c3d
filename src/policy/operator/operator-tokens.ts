import type { Role } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { CredentialStore } from '../auth/credential.store.js';
import type { OrgService } from '../org.service.js';
import { defaultOrg } from '../org.types.js';
import type { MemberService } from '../orgs/member.service.js';
import type { MemberStore } from '../orgs/member.store.js';
import type { TokenSecretService } from '../orgs/token-secret.service.js';
import { operatorContext } from './operator-context.js';

/** The org, subject and role that a token is wanted for, and whether they may be created. */
export interface MemberWish {
  readonly org: string;
  readonly sub: string;
  /** Undefined: the current role of the member, or `member` for a new one. */
  readonly role?: Role;
  /** True: create the org and the member, or change the role, when they differ. */
  readonly create: boolean;
}

/** Prepares orgs and members for tokens that the operator signs. */
export class OperatorTokens {
  constructor(
    private readonly store: CredentialStore,
    private readonly orgs: OrgService,
    private readonly members: MemberService,
    private readonly memberStore: MemberStore,
    private readonly secrets: TokenSecretService,
  ) {}

  /**
   * Makes an org accept tokens of a subject. Returns the previous role when it changed. Throws `not_found` or
   * `conflict` when the change is not allowed.
   */
  async admitMember({ org: slug, sub, role, create }: MemberWish): Promise<Role | undefined> {
    if (create && !(await this.store.orgBySlug(slug)))
      await this.orgs.create(await operatorContext(this.store, defaultOrg), { slug });
    const ctx = await operatorContext(this.store, slug);
    const member = await this.memberStore.find(ctx.org.id, sub);
    if (member && !member.active)
      throw new RialtoError('conflict', { message: `"${sub}" was deactivated in the org "${slug}"` });
    if (member && (role === undefined || role === member.role)) return undefined;
    if (!create)
      throw member
        ? new RialtoError('conflict', {
            message: `"${sub}" has the role ${member.role} in the org "${slug}", not ${role}`,
          })
        : new RialtoError('not_found', { message: `"${sub}" is not a member of the org "${slug}"` });
    const groups = member?.groups ?? [];
    await this.members.save(ctx, slug, { sub, role: role ?? 'member', groups, active: true });
    return member?.role;
  }

  /** Returns the newest secret that signs tokens of an org; undefined when it has none. */
  async signingSecret(slug: string): Promise<Buffer | undefined> {
    return (await this.store.orgKeys(slug))?.secrets[0];
  }

  /** Creates a new secret for an org. The previous one stays valid for `graceSeconds`. */
  async rotateTokenSecret(slug: string, graceSeconds: number): Promise<string> {
    const ctx = await operatorContext(this.store, slug);
    return (await this.secrets.rotate(ctx, slug, { graceSeconds })).secret;
  }
}
