import { AIMessage } from '@langchain/core/messages';
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph';
import { ToolNode } from '@langchain/langgraph/prebuilt';
import { MultiServerMCPClient } from '@langchain/mcp-adapters';

const { PEER_MCP, PEER_TOKEN } = process.env;
const headers = { Authorization: `Bearer ${PEER_TOKEN}` };
const client = new MultiServerMCPClient({ mcpServers: { rialto: { transport: 'http', url: PEER_MCP, headers } } });
const tools = await client.getTools();
const name = tools.map((tool) => tool.name).find((one) => one.endsWith('own__echo'));
/** Stands for a model: it calls the tool. */
const script = () => ({
  messages: [new AIMessage({ content: '', tool_calls: [{ id: '1', name, args: { text: 'hello from LangGraph' } }] })],
});
const graph = new StateGraph(MessagesAnnotation)
  .addNode('script', script)
  .addNode('tools', new ToolNode(tools))
  .addEdge('__start__', 'script')
  .addEdge('script', 'tools')
  .addEdge('tools', '__end__')
  .compile();
const { messages } = await graph.invoke({ messages: [] });
await client.close();
const text = JSON.stringify(messages.at(-1).content);
console.log(text.includes('hello from LangGraph') ? 'OK' : 'NO', JSON.stringify([tools.length, text]));
