import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const { PEER_MCP, PEER_TOKEN, PATH } = process.env;
const home = mkdtempSync(join(tmpdir(), 'rialto-gemini-'));
mkdirSync(join(home, '.gemini'));
const headers = { Authorization: `Bearer ${PEER_TOKEN}` };
const settings = { mcpServers: { rialto: { httpUrl: PEER_MCP, headers } } };
writeFileSync(join(home, '.gemini', 'settings.json'), JSON.stringify(settings));
const { stdout, stderr } = await promisify(execFile)(process.execPath, ['node_modules/.bin/gemini', 'mcp', 'list'], {
  env: { PATH, HOME: home, GEMINI_CLI_TRUST_WORKSPACE: 'true', NO_COLOR: '1' },
});
const line = `${stdout}\n${stderr}`.split('\n').find((one) => one.includes('rialto')) ?? '';
console.log(/\bConnected\b/i.test(line) ? 'OK' : 'NO', JSON.stringify(line.replace(/\u001b\[\d+m/g, '').trim()));
