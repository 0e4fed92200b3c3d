import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

const { PEER_MCP, PEER_TOKEN, PATH, HOME } = process.env;
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [
    ...['node_modules/mcp-remote/dist/proxy.js', PEER_MCP, '--allow-http', '--transport', 'http-only'],
    ...['--header', 'Authorization:${AUTHORIZATION}'],
  ],
  env: { PATH, HOME, AUTHORIZATION: `Bearer ${PEER_TOKEN}` },
  stderr: 'ignore',
});
const client = new Client({ name: 'peer', version: '1' });
await client.connect(transport);
const { tools } = await client.listTools();
const { content } = await client.callTool({ name: 'own__echo', arguments: { text: 'hello through mcp-remote' } });
await client.close();
console.log(content[0].text === 'hello through mcp-remote' ? 'OK' : 'NO', JSON.stringify([tools.length, content]));
process.exit();
