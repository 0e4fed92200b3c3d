import { InMemoryRunner, RemoteA2AAgent } from '@google/adk';

const [appName, userId] = ['peers', 'bob'];
const agent = new RemoteA2AAgent({
  name: 'echo',
  description: 'An agent elsewhere.',
  agentCard: `${process.env.PEER_AGENT}/`,
});
const runner = new InMemoryRunner({ agent, appName });
const session = await runner.sessionService.createSession({ appName, userId });
const newMessage = { role: 'user', parts: [{ text: 'hello from adk' }] };
const heard = [];
for await (const { content } of runner.runAsync({ userId, sessionId: session.id, newMessage }))
  heard.push(...(content?.parts ?? []).map(({ text }) => text));
console.log(heard.includes('hello from adk') ? 'OK' : 'NO', JSON.stringify(heard));
