import type { Deferral } from '../admission/delivery-admission.js';
import type { Claimed } from './delivery.store.js';
import type { Posted } from './webhook-post.js';

/** The delivery was not tried: the database of the gateway was not available. */
interface DatabaseAway {
  readonly kind: 'deferred';
  readonly why: 'database';
  readonly inMs: number;
}

/**
 * The end of one attempt to deliver. `deferred`: nothing was sent, and the attempt does not count. `skipped`: there was
 * nothing to post, or another process took over.
 */
export type Attempt =
  | {
      readonly kind: 'delivered';
      /** The next delivery of the configuration, when it was claimed with this end. */
      readonly next?: Claimed;
    }
  | { readonly kind: 'retry'; readonly posted: Posted; readonly inMs: number }
  | {
      readonly kind: 'gaveUp';
      readonly posted: Posted;
      /** True when nothing more is posted to the configuration. */
      readonly isClosed: boolean;
    }
  | Deferral
  | DatabaseAway
  | { readonly kind: 'skipped' };
