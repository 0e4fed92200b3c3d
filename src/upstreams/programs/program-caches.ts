import { chmodSync, mkdirSync, mkdtempSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { newId } from '../../kernel/ids.js';

/** An MCP server that is a program, as its org calls it. */
export interface ProgramOwner {
  readonly orgId: string;
  readonly serverId: string;
}

/**
 * Folders for what programs download (`npx`, `uvx`): they stay from one start to the next for as long as this process lives. Each server of
 * an org has its own, so that none puts there what another runs.
 */
@Injectable()
export class ProgramCaches implements OnApplicationShutdown {
  private root?: string;

  folderOf({ orgId, serverId }: ProgramOwner): string {
    this.root ??= this.made();
    const folder = join(this.root, orgId, serverId);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  private made(): string {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-mcp-caches-'));
    // A program may run as another user, who passes through it to its own.
    chmodSync(folder, 0o711);
    return folder;
  }

  /** Of a server that is gone. Another of its name may begin its own meanwhile. */
  async drop({ orgId, serverId }: ProgramOwner): Promise<void> {
    if (this.root === undefined) return;
    const gone = join(this.root, `gone-${newId()}`);
    try {
      renameSync(join(this.root, orgId, serverId), gone);
    } catch {
      return; // there is none
    }
    await removed(gone);
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.root !== undefined) await removed(this.root);
  }
}

/** A program that was killed just now may write still, or left what we may not touch: that is the operating system's to tidy. */
export function removed(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}
