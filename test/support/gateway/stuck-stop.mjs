// `node --import`: the database connections of this process do not end once it is told to stop, and the limit of its stop comes at once.
import pg from 'pg';

const limitMs = 29_000;
const { setTimeout } = globalThis;

process.once('SIGTERM', () => (pg.Pool.prototype.end = () => new Promise(() => undefined)));
globalThis.setTimeout = (work, ms, ...told) => setTimeout(work, ms === limitMs ? 1 : ms, ...told);
