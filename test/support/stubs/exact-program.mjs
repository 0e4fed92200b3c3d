// An MCP server on standard input and output. It returns the arguments of a call as the original text, because a JSON
// parser could change the digits of large numbers.
import { createInterface } from 'node:readline';

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  const reply = (result) => process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
  if (method === 'initialize')
    reply('{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}');
  else if (method === 'tools/list') reply('{"tools":[{"name":"back","inputSchema":{"type":"object"}}]}');
  else if (method === 'tools/call') {
    const [, object] = /"arguments":(\{.*?\}\],"text":"\d+"\})/.exec(line);
    reply(`{"content":[{"type":"text","text":"x"}],"structuredContent":${object}}`);
  } else
    process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"unknown"}}\n`);
}
