import { resolve } from 'node:path';
import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { Sweeps, type Sweeper } from '../../platform/jobs/handles-job.decorator.js';
import { defaultOrg } from '../../policy/auth.service.js';
import { OrgDirectory } from '../../policy/org-directory.js';
import { agentsIn, readAgent } from './agents-folder.js';
import { DeclaredPublished } from './declared-published.js';

/**
 * Publishes an agent for every directory in the agents folder (RY-45). New agents are served within seconds, without
 * a restart; the agents of removed directories are archived. All processes of a deployment must see the same folder
 * and the same configuration.
 */
@Injectable()
@Sweeps('agents.folder')
export class AgentsFolderSweeper implements Sweeper {
  readonly everyMs = 2_000;
  private readonly folder: string;
  private seen?: string;

  constructor(
    @Inject(SETTINGS) settings: Settings,
    private readonly orgs: OrgDirectory,
    private readonly declared: DeclaredPublished,
  ) {
    this.folder = resolve(settings.RIALTO_AGENTS_DIR);
  }

  sweep(): Promise<void> {
    return this.reconcile();
  }

  /**
   * Reads the folder and reconciles its agents. While nothing changed it only lists the folder: it reads no profile
   * and no row.
   */
  async reconcile(org?: OrgRef): Promise<void> {
    const marks = await agentsIn(this.folder);
    const seen = JSON.stringify([...marks]);
    if (seen === this.seen) return;
    const home = org ?? (await this.orgs.find(defaultOrg));
    if (!home) return; // the first start: the org does not exist yet, the next sweep tries again
    const declared = await Promise.all([...marks.keys()].map((directory) => readAgent(this.folder, directory)));
    await this.declared.declare(home, 'folder', declared);
    this.seen = seen;
  }
}
