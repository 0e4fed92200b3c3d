import { leaseMs } from './task-lease.store.js';

/** How long a service may be silent before it counts as gone (AN-57). */
export const silenceMs = 300_000;
/** How long until a message is sent again of which nobody knows whether the service has got it. */
export const uncertainMs = leaseMs;
/** How long the holder of a mailbox task is believed without a word of it. */
export const mailboxLeaseMs = 30_000;
/** How long a task waits in a mailbox. */
export const mailboxWaitMs = 86_400_000;
