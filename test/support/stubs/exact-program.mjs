// An MCP server on standard input that says the arguments of a call back, digit by digit: no reader of JSON touches them.
import { createInterface } from 'node:readline';

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined) continue;
  const reply = (result) => process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"result":${result}}\n`);
  if (method === 'initialize')
    reply('{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}');
  else if (method === 'tools/list') reply('{"tools":[{"name":"back","inputSchema":{"type":"object"}}]}');
  else if (method === 'tools/call')
    reply(
      `{"content":[{"type":"text","text":"x"}],"structuredContent":${/"arguments":(\{.*?\}\],"text":"\d+"\})/.exec(line)[1]}}`,
    );
  else
    process.stdout.write(`{"jsonrpc":"2.0","id":${JSON.stringify(id)},"error":{"code":-32601,"message":"unknown"}}\n`);
}
