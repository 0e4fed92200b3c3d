import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const { PEER_MCP, PEER_TOKEN } = process.env;
const inspect = async (...more) => {
  const words = ['--cli', PEER_MCP, '--transport', 'http', '--header', `Authorization: Bearer ${PEER_TOKEN}`, ...more];
  const { stdout } = await promisify(execFile)(process.execPath, ['node_modules/.bin/mcp-inspector', ...words]);
  return JSON.parse(stdout);
};
const { tools } = await inspect('--method', 'tools/list');
const said = ['--method', 'tools/call', '--tool-name', 'own__echo', '--tool-arg', 'text=hello from the Inspector'];
const { content } = await inspect(...said);
console.log(content[0].text === 'hello from the Inspector' ? 'OK' : 'NO', JSON.stringify([tools.length, content]));
