import type { CallContext } from '../../kernel/call-context.js';
import type { AdminActs } from '../../platform/bus/admin-acts.js';
import type { Pg } from '../../platform/database/pg.js';
import { resealAll, type Resealed } from '../../platform/secrets/sealed-columns.js';
import { SigningKeys } from '../../platform/secrets/signing-keys.js';
import type { Vault } from '../../platform/secrets/vault.js';

/** Rotates the keys of the deployment, as audited acts. */
export class DeploymentKeys {
  constructor(
    private readonly admin: AdminActs,
    private readonly pg: Pg,
    private readonly vault: Vault,
  ) {}

  /**
   * Creates a new key for cards and checkpoints and returns its id. The previous key stays published for
   * `graceSeconds`.
   */
  rotateSigning(ctx: CallContext, graceSeconds: number): Promise<string> {
    return this.admin.prepareAndWrite(
      ctx,
      'signing-key.rotate',
      { grace: graceSeconds },
      () => new SigningKeys(this.pg, this.vault).rotateKey(graceSeconds),
      (_tx, kid) => Promise.resolve(kid),
    );
  }

  /** Seals the secrets of the other encryption key again with the current key. */
  reseal(ctx: CallContext): Promise<Resealed> {
    return this.admin.prepareAndWrite(
      ctx,
      'encryption-key.rotate',
      {},
      () => resealAll(this.pg.pool, this.vault),
      (_tx, done) => Promise.resolve(done),
    );
  }
}
