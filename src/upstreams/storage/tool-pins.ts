import { hash } from 'node:crypto';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject } from '../../kernel/json.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { letsThrough } from './registered-server.js';
import type { ApproveTools, OfferedTool, QuarantinedTool, ToolPin } from '../upstream.types.js';

/**
 * Twice the number of tools that a server may offer. No pin is removed to make room for a new one: otherwise a server
 * could hide a change behind many temporary names.
 */
const maxPins = 4_000;

export type Pins = Pick<McpServerEntity, 'approvedTools' | 'quarantinedTools'>;
type Pinned = Pins & Pick<McpServerEntity, 'offer' | 'toolChanges' | 'toolAllowList'>;

/** Tool with a changed definition: the approved hash, if there is one, and whether it is in quarantine. */
interface ChangedTool extends ToolPin {
  readonly approvedHash: string | null;
  readonly quarantined: boolean;
}

/** Returns the hex SHA-256 hash of the whole definition of a tool, independent of the order of its members. */
export function hashOf(tool: OfferedTool): string {
  return hash('sha256', JSON.stringify(tool, sorted), 'hex');
}

/**
 * Judges the tools that a server offers now against the approved definitions. The first tools of a server are approved.
 * `found` holds the tools that changed since the last judgement, in quarantine or not. Pure.
 * @param at time in ISO 8601.
 */
export function judge(before: Pinned, tools: readonly OfferedTool[], at: string): Pins & { found: ChangedTool[] } {
  const { toolChanges, quarantinedTools } = before;
  const known = new Map(pinsOf(before).map((pin) => [pin.name, pin.hash]));
  const waiting = new Map(quarantinedTools.map((tool) => [tool.name, tool]));
  const approved = toolChanges === 'accept' ? new Map<string, string>() : new Map(known);
  const quarantine: QuarantinedTool[] = [];
  const found: ChangedTool[] = [];
  const mayPass = (name: string): boolean =>
    known.size === 0 ||
    toolChanges === 'accept' ||
    (toolChanges === 'hold-changed' && !known.has(name) && !waiting.has(name) && approved.size < maxPins);
  for (const tool of tools) {
    const now = { name: tool.name, hash: hashOf(tool), approvedHash: known.get(tool.name) ?? null };
    const isKnown = now.hash === now.approvedHash;
    const entry = waiting.get(now.name);
    const quarantined = !isKnown && !mayPass(now.name);
    // New names above the limit are quarantined, but not reported.
    const isAboveLimit = now.approvedHash === null && approved.size >= maxPins;
    if (!isKnown && !entry && !isAboveLimit && known.size > 0) found.push({ ...now, quarantined });
    if (!quarantined) approved.set(now.name, now.hash);
    else quarantine.push(entry?.hash === now.hash ? entry : { ...now, since: at });
  }
  return { approvedTools: pinsFrom(approved), quarantinedTools: quarantine, found };
}

/**
 * Ends the quarantine of the wanted tools, or without `wanted` of all tools that the allow list permits. Approved tools
 * stay approved. Throws `unprocessable` for a name that the server does not offer, and `conflict` for a definition that
 * changed since the admin read it. Pure.
 */
export function approve(row: Pinned, wanted: ApproveTools['tools']): Pins & { approved: ToolPin[] } {
  const known = new Map(pinsOf(row).map((pin) => [pin.name, pin.hash]));
  const waiting = new Map(row.quarantinedTools.map((tool) => [tool.name, tool]));
  const offered = new Set(row.offer.tools.map(({ name }) => name).filter((name) => letsThrough(row, name)));
  for (const { name, hash: seen } of wanted ?? []) {
    if (!offered.has(name)) throw new RialtoError('unprocessable', { message: `the MCP server has no tool "${name}"` });
    if (seen !== undefined && seen !== (waiting.get(name)?.hash ?? known.get(name)))
      throw new RialtoError('conflict', {
        message: `the definition of "${name}" changed since you read it`,
        hint: 'GET /api/mcp/tools?quarantined=true shows the current one',
      });
  }
  const names = wanted ? new Set(wanted.map(({ name }) => name)) : offered;
  const approved = row.quarantinedTools.filter(({ name }) => names.has(name)).map(({ name, hash }) => ({ name, hash }));
  for (const { name, hash } of approved) known.set(name, hash);
  if (known.size > maxPins) for (const name of known.keys()) if (!offered.has(name)) known.delete(name);
  return {
    approvedTools: pinsFrom(known),
    quarantinedTools: row.quarantinedTools.filter(({ name }) => !names.has(name)),
    approved,
  };
}

/** Returns the approved definitions; those of the stored offer while no pin is stored. Pure. */
export function pinsOf({ approvedTools, offer }: Pick<Pinned, 'approvedTools' | 'offer'>): readonly ToolPin[] {
  return approvedTools.length > 0
    ? approvedTools
    : offer.tools.map((tool) => ({ name: tool.name, hash: hashOf(tool) }));
}

function pinsFrom(hashes: ReadonlyMap<string, string>): ToolPin[] {
  return [...hashes].map(([name, hash]) => ({ name, hash }));
}

/** Sorts members. Does not use RFC 8785, which refuses a lone surrogate: a server may send one in any text. */
function sorted(_key: string, value: unknown): unknown {
  return isJsonObject(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value;
}
