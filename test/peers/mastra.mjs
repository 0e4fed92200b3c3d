import { MastraClient } from '@mastra/client-js';
import { A2AAgent } from '@mastra/core/a2a';

const client = new MastraClient({ baseUrl: process.env.PEER_BASE, apiPrefix: '/' });
const message = {
  kind: 'message',
  role: 'user',
  messageId: 'm-1',
  parts: [{ kind: 'text', text: 'hello from mastra' }],
};
const { result } = await client.getA2A('echo').sendMessage({ message });
const agent = new A2AAgent({ url: `${process.env.PEER_AGENT}/.well-known/agent-card.json` });
const { text } = await agent.generate('hello from its agent');
const said = result?.artifacts?.[0]?.parts?.[0]?.text;
const isGood = said === 'hello from mastra' && text.includes('hello from its agent');
console.log(isGood ? 'OK' : 'NO', JSON.stringify([said, text]));
process.exit(0);
