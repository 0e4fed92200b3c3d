import { existsSync, readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Inject, Injectable } from '@nestjs/common';
import type { OrgId } from '../../kernel/ids.js';
import { SETTINGS, writePrivateFile, type Settings } from '../../platform/config/settings.js';
import { TxRunner } from '../../platform/database/tx.js';
import { apiKeyPrefix, hashKey, newApiKey } from '../auth/api-key.js';
import { CredentialStore } from '../auth/credential.store.js';
import { ApiKeyStore } from './api-key.store.js';

/** Holds an admin API key in a private file, for development. */
@Injectable()
export class AdminTokenFile {
  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly credentials: CredentialStore,
    private readonly keys: ApiKeyStore,
    private readonly txs: TxRunner,
  ) {}

  /** Writes the key of an org to the file and returns its path. The key stays the same after a restart. */
  async writeKey(org: OrgId): Promise<string> {
    const file = join(resolve(this.settings.RIALTO_DATA_DIR), 'token');
    const stored = existsSync(file) ? readFileSync(file, 'utf8').trim() : '';
    const usable = stored.startsWith(apiKeyPrefix) && stored.length > 20;
    if (usable && (await this.credentials.bearerOfKey(hashKey(stored)))) return file;
    const key = usable ? stored : newApiKey();
    await this.txs.run((tx) => this.keys.insert(tx, org, { name: 'admin', role: 'admin', groups: [] }, key));
    writePrivateFile(file, `${key}\n`);
    return file;
  }
}
