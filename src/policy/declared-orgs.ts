import { Inject, Injectable } from '@nestjs/common';
import type { z } from 'zod';
import { RialtoError } from '../kernel/errors.js';
import { SETTINGS, type Settings } from '../platform/config/settings.js';
import { TxRunner } from '../platform/database/tx.js';
import { PolicyService } from './policy.service.js';
import { MemberStore } from './orgs/member.store.js';
import { OrgService } from './org.service.js';
import { ChangeOrg, CreateOrg, defaultOrg, SaveMember } from './org.types.js';

type Declared = Settings['configFile']['orgs'][number];

/**
 * Reconciles the orgs, members and policies that the configuration file declares. It creates and changes them, but
 * removes no org or member that the file no longer names, because a deleted line must not delete data. To exclude a
 * member, set `active: false`.
 */
@Injectable()
export class DeclaredOrgs {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly orgs: OrgService,
    private readonly members: MemberStore,
    private readonly policies: PolicyService,
    private readonly txs: TxRunner,
  ) {}

  /** Applies the file. Throws `invalid_params` that names the entry; nothing of that entry is written then. */
  async reconcile(): Promise<void> {
    for (const declared of this.settings.configFile.orgs) {
      const { slug, name, members, policies, ...limits } = declared;
      const org = validated(slug, CreateOrg, { slug, name });
      const wanted = { ...(name !== undefined && { name }), ...limits };
      const change = Object.keys(wanted).length > 0 ? validated(slug, ChangeOrg, wanted) : {};
      const validMembers = members.map((member) => validated(`${slug}.members.${member.sub}`, SaveMember, member));
      if (slug === defaultOrg && policies !== undefined)
        throw wrong(slug, `declare the policies of the org "${defaultOrg}" at the top level of the file`);
      await this.txs.run(async (tx) => {
        const { id } = await this.orgs.declareOrg(tx, org, change);
        await this.members.saveAll(tx, id, validMembers);
        if (policies !== undefined) await this.policies.reconcile(tx, id, policies);
      });
    }
  }
}

function validated<Output>(where: string, schema: z.ZodType<Output>, value: Partial<Declared> | object): Output {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  const [{ path, message }] = parsed.error.issues as [z.core.$ZodIssue];
  throw wrong(where, `${path.length > 0 ? `${path.join('.')} ` : ''}${message}`);
}

function wrong(where: string, what: string): RialtoError {
  return new RialtoError('invalid_params', { message: `rialto.config.json: orgs: ${where}: ${what}` });
}
