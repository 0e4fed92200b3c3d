import { chmodSync, mkdirSync, mkdtempSync, renameSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { newId } from '../../kernel/ids.js';

/** Identifies an MCP server that is a program, by its org and the id in the org. */
export interface ProgramOwner {
  readonly orgId: string;
  readonly serverId: string;
}

/**
 * Manages cache folders for the downloads of programs (`npx`, `uvx`). A folder survives restarts of its program and is
 * removed when this process ends. Each server of an org has its own folder, so that no server can place files that
 * another one runs.
 */
@Injectable()
export class ProgramCaches implements OnApplicationShutdown {
  private root?: string;

  folderOf({ orgId, serverId }: ProgramOwner): string {
    this.root ??= this.createRoot();
    const folder = join(this.root, orgId, serverId);
    mkdirSync(folder, { recursive: true });
    return folder;
  }

  private createRoot(): string {
    const folder = mkdtempSync(join(tmpdir(), 'rialto-mcp-caches-'));
    // A program may run as another user, which must be able to pass through this folder to its own.
    chmodSync(folder, 0o711);
    return folder;
  }

  /**
   * Removes the folder of a deleted server. The folder is renamed first, because a new server of the same id may create
   * its own meanwhile.
   */
  async removeFolder({ orgId, serverId }: ProgramOwner): Promise<void> {
    if (this.root === undefined) return;
    const renamed = join(this.root, `gone-${newId()}`);
    try {
      renameSync(join(this.root, orgId, serverId), renamed);
    } catch {
      return; // the server has no folder
    }
    await removed(renamed);
  }

  async onApplicationShutdown(): Promise<void> {
    if (this.root !== undefined) await removed(this.root);
  }
}

/**
 * Removes a folder. Ignores failures: a killed program may still write to it, or may have left files that this process
 * may not remove. The operating system cleans up such files.
 */
export function removed(folder: string): Promise<void> {
  return rm(folder, { recursive: true, force: true, maxRetries: 3 }).catch(() => undefined);
}
