// `npm run test:wire [-- --streams=10000 --connections=50]`: reads many streams of a built gateway with the strict
// HTTP/1.1 parser over keep-alive connections. Prints how many were complete; exits with 1 when any was not.
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startProcess } from '../support/gateway/process.js';
import { eventsIn, StrictConnection, type StrictRequest } from '../support/clients/strict-http.js';

const { values } = parseArgs({
  options: { streams: { type: 'string', default: '10000' }, connections: { type: 'string', default: '50' } },
});
const [streams, connections] = [Number(values.streams), Number(values.connections)];
const message = (id: number) => ({ messageId: `m-${id}`, role: 'ROLE_USER', parts: [{ text: `stream number ${id}` }] });
const kinds: Record<string, (id: number) => StrictRequest> = {
  SendStreamingMessage: (id) => ({
    path: '/a2a/agents/echo',
    body: { jsonrpc: '2.0', id, method: 'SendStreamingMessage', params: { message: message(id) } },
  }),
  'message:stream': (id) => ({
    path: '/a2a/agents/echo/message:stream',
    headers: { 'a2a-version': '1.0' },
    body: { message: message(id) },
  }),
};

const folder = mkdtempSync(join(tmpdir(), 'rialto-wire-'));
const gateway = startProcess({
  RIALTO_DATA_DIR: folder,
  RIALTO_LOG_LEVEL: 'warn',
  RIALTO_RATE_LIMIT_PRINCIPAL: '1000000',
  RIALTO_RATE_LIMIT_ORG: '1000000',
});
let broken = 0;
try {
  const url = await gateway.ready;
  const authorization = `Bearer ${readFileSync(join(folder, 'token'), 'utf8').trim()}`;
  const published = { name: 'echo', description: 'Repeats the message.', a2a_enabled: true };
  await fetch(`${url}/api/a2a/published`, {
    method: 'POST',
    headers: { authorization, 'content-type': 'application/json' },
    body: JSON.stringify({ ...published, executor: { kind: 'echo', chunks: 3 } }),
  });
  for (const [kind, request] of Object.entries(kinds)) broken += await play(url, authorization, kind, request);
} finally {
  gateway.child.kill('SIGTERM');
  await gateway.ended;
  rmSync(folder, { recursive: true, force: true });
}
process.exit(broken === 0 ? 0 : 1);

/** Reads all streams of one kind; returns how many were not complete. */
async function play(
  url: string,
  authorization: string,
  kind: string,
  request: (id: number) => StrictRequest,
): Promise<number> {
  const begun = performance.now();
  const failures: string[] = [];
  let [next, complete] = [0, 0];
  const work = async (): Promise<void> => {
    let connection: StrictConnection | undefined;
    for (let id = next++; id < streams; id = next++) {
      connection ??= await StrictConnection.open(url);
      try {
        const asked = request(id);
        const { status, body } = await connection.exchange({ ...asked, headers: { ...asked.headers, authorization } });
        const events = eventsIn(body);
        const isWhole = events.length === 6 && JSON.stringify(events.at(-1)).includes('TASK_STATE_COMPLETED');
        if (status !== 200 || !isWhole) throw new Error(`${status}: ${body.slice(-300)}`);
        complete++;
      } catch (error) {
        failures.push(String(error));
        connection.destroy();
        connection = undefined;
      }
    }
    await connection?.finish();
  };
  await Promise.all(Array.from({ length: connections }, work));
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
  const ended = `${complete} of ${streams} complete over ${connections} connections in ${seconds} s`;
  process.stdout.write(`Node ${process.version}, ${kind}: ${ended}\n`);
  for (const failure of failures.slice(0, 3)) process.stdout.write(`  ${failure}\n`);
  return streams - complete;
}
