import { Injectable } from '@nestjs/common';
import type { OrgRef } from '../kernel/call-context.js';
import { AgentsFolderSweeper } from './declared/agents-folder.sweeper.js';
import { DeclaredAgents } from './declared/declared-agents.js';
import { DeclaredPublished } from './declared/declared-published.js';

/** Reconciles all declared agents at start. Registered agents come first, because published agents may call them. */
@Injectable()
export class Declarations {
  constructor(
    private readonly registered: DeclaredAgents,
    private readonly published: DeclaredPublished,
    private readonly folder: AgentsFolderSweeper,
  ) {}

  async reconcile(org: OrgRef): Promise<void> {
    await this.registered.reconcile(org.id);
    await this.published.reconcile(org);
    await this.folder.reconcile(org);
  }
}
