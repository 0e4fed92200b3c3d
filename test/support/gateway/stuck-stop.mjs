// `node --import`: after SIGTERM, the database connections of this process never end, and the time limit for the stop
// passes at once.
import pg from 'pg';

const limitMs = 29_000;
const { setTimeout } = globalThis;

process.once('SIGTERM', () => (pg.Pool.prototype.end = () => new Promise(() => undefined)));
globalThis.setTimeout = (work, ms, ...told) => setTimeout(work, ms === limitMs ? 1 : ms, ...told);
