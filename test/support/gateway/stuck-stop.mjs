// `node --import`: after SIGTERM, the servers of this process never close, and the time limit for the stop passes at
// once.
import { Server } from 'node:net';

const limitMs = 29_000;
const { setTimeout } = globalThis;

process.once('SIGTERM', () => {
  Server.prototype.close = function neverCloses() {
    return this;
  };
});
globalThis.setTimeout = (work, ms, ...told) => setTimeout(work, ms === limitMs ? 1 : ms, ...told);
