import { readFileSync } from 'node:fs';
import { decrypt, type Envelope, type KeyRing, type KeySet } from './e2ee.js';

const page = readFileSync('docs/encryption.md', 'utf8');
const blockOf = <Content>(name: string): Content =>
  JSON.parse(new RegExp(`<!-- vector: ${name} -->\n\`\`\`json\n([^\`]*)\`\`\``).exec(page)![1]!) as Content;

it('RI-52: opens the vector of docs/encryption.md', async () => {
  const envelope = blockOf<Envelope>('envelope');
  const { payload, sender } = await decrypt(envelope, {
    keys: blockOf<KeyRing>('recipient'),
    recipient: 'https://agents.example/a2a/bob/keys.json',
    keysOf: () => blockOf<KeySet>('sender'),
    place: { messageId: 'msg-1', contextId: 'ctx-1', taskId: 'task-1' },
  });
  expect(page).toContain(`Its payload is \`${payload.toString()}\``);
  expect(sender).toBe('https://agents.example/a2a/alice/keys.json');
});
