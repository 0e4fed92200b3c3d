import { randomUUID } from 'node:crypto';
import { SendMessageRequest } from '@a2a-js/sdk';
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from '@a2a-js/sdk/client';
import { Annotation, StateGraph } from '@langchain/langgraph';

const { PEER_BASE, PEER_TOKEN } = process.env;
const fetchImpl = (input, init) => {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${PEER_TOKEN}`);
  return fetch(input, { ...init, headers });
};
const factory = new ClientFactory({
  transports: [new JsonRpcTransportFactory({ fetchImpl })],
  cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
});

/** Finds an agent by its role in the index of the gateway. */
const find = async () => {
  const { agents } = await (await fetchImpl(`${PEER_BASE}/a2a/agents`)).json();
  return { agent: agents.find(({ role }) => role.includes('Repeats')) };
};
/** Reads its card, and sends it the question over A2A. */
const ask = async ({ question, agent }) => {
  const client = await factory.createFromUrl(agent.agentCardUrl, '');
  const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: question }] };
  const { payload, ...task } = await client.sendMessage(SendMessageRequest.fromJSON({ message }));
  return { answer: JSON.stringify((payload?.value ?? task).artifacts) };
};
const State = Annotation.Root({ question: Annotation(), agent: Annotation(), answer: Annotation() });
const graph = new StateGraph(State)
  .addNode('find', find)
  .addNode('ask', ask)
  .addEdge('__start__', 'find')
  .addEdge('find', 'ask')
  .addEdge('ask', '__end__')
  .compile();
const question = 'hello from LangGraph over A2A';
const { agent, answer } = await graph.invoke({ question });
console.log(answer?.includes(question) ? 'OK' : 'NO', JSON.stringify([agent.name, answer]));
