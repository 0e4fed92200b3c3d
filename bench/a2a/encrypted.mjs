// Compares sends of encrypted messages with sends of the same bytes in a data part that no rule reads: in turn, to one
// agent of one gateway.
import { encrypt, generateKeys, publicKeys } from '../../dist/src/protocol/e2ee/e2ee.js';
import { load, warmUp } from '../lib/load.mjs';
import { json, startRialto } from '../lib/processes.mjs';
import { printHeader, printServers, settings } from '../lib/report.mjs';

const sizes = [500, 50_000];
const { rounds, seconds, warmUpSeconds } = settings();

await printHeader('bench/a2a/encrypted', { rounds, of: `${seconds} s`, databaseUrl: process.env.DATABASE_URL });
const rialto = await startRialto();
try {
  const { url, token, pid } = rialto;
  const published = { name: 'echo', description: 'Repeats the message.', executor: { kind: 'echo' } };
  await json(`${url}/api/a2a/published`, { token, body: { ...published, a2a_enabled: true } });
  let n = 0;
  const sends = (data) => () => {
    const message = { messageId: `m${++n}`, role: 'ROLE_USER', parts: [{ data }] };
    return JSON.stringify({ jsonrpc: '2.0', id: n, method: 'SendMessage', params: { message } });
  };
  for (const size of sizes) {
    const sealed = await encrypt('x'.repeat(size), {
      ...{ keys: generateKeys(), sender: 'alice', recipient: 'bob', recipientKeys: publicKeys(generateKeys()) },
      ...{ messageId: 'm', contextId: 'c' },
    });
    const { encrypted_payload: payload, ...others } = sealed;
    const bodies = { encrypted: sends(sealed), 'the same bytes': sends({ unencrypted_bytes: payload, ...others }) };
    const shoot = (body, span) =>
      load(
        {
          ...{ url: `${url}/a2a/agents/echo`, pid, headers: { authorization: `Bearer ${token}` }, body },
          expect: (text) => text.includes('TASK_STATE_COMPLETED'),
        },
        { connections: 50, seconds: span },
      );
    const shots = {};
    for (const [name, body] of Object.entries(bodies)) await warmUp(name, () => shoot(body, warmUpSeconds));
    for (let round = 0; round < rounds; round++)
      for (const [name, body] of Object.entries(bodies)) (shots[name] ??= []).push(await shoot(body, seconds));
    console.log(`\nSendMessage of ${size} characters, 50 connections`);
    printServers(shots);
  }
} finally {
  await rialto.stop();
}
