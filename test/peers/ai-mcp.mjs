import * as mcp from '@ai-sdk/mcp';
import { generateText, stepCountIs } from 'ai';
import * as mocks from 'ai/test';

const { PEER_MCP, PEER_TOKEN } = process.env;
const create = mcp.createMCPClient ?? mcp.experimental_createMCPClient;
const headers = { Authorization: `Bearer ${PEER_TOKEN}` };
const client = await create({ transport: { type: 'http', url: PEER_MCP, headers } });
const tools = await client.tools();
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const input = JSON.stringify({ text: 'hello from the AI SDK' });
/** A model that calls the tool, then says what it heard. */
let heard;
const model = new mocks.MockLanguageModelV3({
  doGenerate: async ({ prompt }) => {
    const last = prompt.at(-1);
    heard = last.role === 'tool' ? JSON.stringify(last.content) : undefined;
    const content =
      heard === undefined
        ? [{ type: 'tool-call', toolCallId: '1', toolName: 'own__echo', input }]
        : [{ type: 'text', text: heard }];
    const unified = heard === undefined ? 'tool-calls' : 'stop';
    return { content, finishReason: { unified, raw: unified }, usage, warnings: [] };
  },
});
const { text } = await generateText({ model, tools, prompt: 'Say hello.', stopWhen: stepCountIs(3) });
await client.close();
console.log(text.includes('hello from the AI SDK') ? 'OK' : 'NO', JSON.stringify([Object.keys(tools).length, text]));
