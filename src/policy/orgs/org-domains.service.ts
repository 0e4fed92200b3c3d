import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { In, Not, Repository } from 'typeorm';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { AdminActs } from '../../platform/bus/admin-acts.js';
import { Notices } from '../../platform/bus/notices.js';
import { isUniqueViolation } from '../../platform/database/pg.js';
import { defaultOrg } from '../auth.service.js';
import { OrgDomainEntity } from './org.entity.js';
import { OrgService, runsDeployment } from '../org.service.js';
import type { OrgDomains } from '../org.types.js';

/**
 * Administers the domains that name an org in the claim `org_domain` of tokens, besides its slug. A domain belongs to
 * one org; only admins of the deployment assign it.
 */
@Injectable()
export class OrgDomainService {
  constructor(
    @InjectRepository(OrgDomainEntity) private readonly rows: Repository<OrgDomainEntity>,
    private readonly orgs: OrgService,
    private readonly admin: AdminActs,
    private readonly notices: Notices,
  ) {}

  get(ctx: CallContext, slug: string): Promise<OrgDomains> {
    return this.admin.read(ctx, 'org.domains', async () => {
      const org = await this.orgs.visibleOrg(ctx, slug);
      const rows = await this.rows.find({ where: { orgId: org.id }, order: { domain: 'asc' } });
      return { domains: rows.map(({ domain }) => domain) };
    });
  }

  /** Sets the domains of an org. Throws `not_found`, `denied`, and `conflict` for a domain of another org. */
  set(ctx: CallContext, slug: string, { domains }: OrgDomains): Promise<OrgDomains> {
    return this.admin.prepareAndWrite(
      ctx,
      'org.set_domains',
      { org: slug, domains },
      async () => {
        const org = await this.orgs.visibleOrg(ctx, slug);
        if (!runsDeployment(ctx))
          throw new RialtoError('denied', {
            message: `only admins of the org "${defaultOrg}" may set the domains of orgs`,
          });
        return org;
      },
      async (tx, { id: orgId }) => {
        const rows = tx.manager.getRepository(OrgDomainEntity);
        const known = (await rows.findBy({ orgId })).map(({ domain }) => domain);
        const { affected } = await rows.delete({ orgId, domain: Not(In(domains)) });
        const added = domains.filter((domain) => !known.includes(domain));
        try {
          await rows.insert(added.map((domain) => ({ domain, orgId })));
        } catch (error) {
          if (!isUniqueViolation(error)) throw error;
          throw new RialtoError('conflict', { message: 'domains: at least one of them belongs to another org' });
        }
        if (affected !== 0) this.notices.tell(tx, 'credentials.changed', { orgId, kind: 'user' });
        return { domains: [...domains].sort() };
      },
    );
  }
}
