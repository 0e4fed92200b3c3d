import { leaseMs } from './task-lease.store.js';

/** Milliseconds that a service may be silent before it counts as gone (AN-57). */
export const silenceMs = 300_000;
/** Milliseconds until a message is sent again when it is unknown whether the service received it. */
export const uncertainMs = leaseMs;
/** Milliseconds of a lease on a mailbox task; a report of its holder extends it. */
export const mailboxLeaseMs = 30_000;
/** Milliseconds that a task may wait in a mailbox. */
export const mailboxWaitMs = 86_400_000;
