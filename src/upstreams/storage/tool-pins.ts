import { hash } from 'node:crypto';
import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject } from '../../kernel/json.js';
import type { McpServerEntity } from './mcp-server.entity.js';
import { letsThrough } from './registered-server.js';
import type { ApproveTools, OfferedTool, QuarantinedTool, ToolPin } from '../upstream.types.js';

/** Twice what a server may offer. None is forgotten to make room: a server could wash its changes through names that it never uses again. */
const maxPins = 4_000;

export type Pins = Pick<McpServerEntity, 'approvedTools' | 'quarantinedTools'>;
type Pinned = Pins & Pick<McpServerEntity, 'offer' | 'toolChanges' | 'toolAllowList'>;

/** A tool that is not what it was: what it was, if it was anything, and whether it is held. */
interface ChangedTool extends ToolPin {
  readonly approvedHash: string | null;
  readonly quarantined: boolean;
}

/** Hex SHA-256 of all that a server says of a tool, in whatever order it says it: all of it is passed on. */
export function hashOf(tool: OfferedTool): string {
  return hash('sha256', JSON.stringify(tool, inOrder), 'hex');
}

/**
 * Judges the definitions that a server offers now by those that were approved. What it offers when it is first seen to offer any is approved.
 * `found` are those that differ since it was seen last, held or not. Pure. @param at ISO 8601.
 */
export function judge(before: Pinned, tools: readonly OfferedTool[], at: string): Pins & { found: ChangedTool[] } {
  const { toolChanges, quarantinedTools } = before;
  const known = new Map(pinsOf(before).map((pin) => [pin.name, pin.hash]));
  const waiting = new Map(quarantinedTools.map((tool) => [tool.name, tool]));
  const approved = toolChanges === 'accept' ? new Map<string, string>() : new Map(known);
  const held: QuarantinedTool[] = [];
  const found: ChangedTool[] = [];
  const mayPass = (name: string): boolean =>
    known.size === 0 ||
    toolChanges === 'accept' ||
    (toolChanges === 'hold-changed' && !known.has(name) && !waiting.has(name) && approved.size < maxPins);
  for (const tool of tools) {
    const now = { name: tool.name, hash: hashOf(tool), approvedHash: known.get(tool.name) ?? null };
    const isKnown = now.hash === now.approvedHash;
    const wait = waiting.get(now.name);
    const quarantined = !isKnown && !mayPass(now.name);
    // Names without end are held, and told of no more.
    const isBeyond = now.approvedHash === null && approved.size >= maxPins;
    if (!isKnown && !wait && !isBeyond && known.size > 0) found.push({ ...now, quarantined });
    if (!quarantined) approved.set(now.name, now.hash);
    else held.push(wait?.hash === now.hash ? wait : { ...now, since: at });
  }
  return { approvedTools: pinsFrom(approved), quarantinedTools: held, found };
}

/**
 * Ends the quarantine of these tools; without `wanted` of all that are let through. Approved ones stay approved. Throws `unprocessable` for a
 * name that the server does not offer, `conflict` for a definition that is not the one that was looked at. Pure.
 */
export function approve(row: Pinned, wanted: ApproveTools['tools']): Pins & { approved: ToolPin[] } {
  const known = new Map(pinsOf(row).map((pin) => [pin.name, pin.hash]));
  const waiting = new Map(row.quarantinedTools.map((tool) => [tool.name, tool]));
  const offered = new Set(row.offer.tools.map(({ name }) => name).filter((name) => letsThrough(row, name)));
  for (const { name, hash: seen } of wanted ?? []) {
    if (!offered.has(name)) throw new RialtoError('unprocessable', { message: `the MCP server has no tool "${name}"` });
    if (seen !== undefined && seen !== (waiting.get(name)?.hash ?? known.get(name)))
      throw new RialtoError('conflict', {
        message: `the definition of "${name}" is not the one you looked at`,
        hint: 'GET /api/mcp/tools?quarantined=true shows the present one',
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

/** What is approved: while no pin was written, what was stored. Pure. */
export function pinsOf({ approvedTools, offer }: Pick<Pinned, 'approvedTools' | 'offer'>): readonly ToolPin[] {
  return approvedTools.length > 0
    ? approvedTools
    : offer.tools.map((tool) => ({ name: tool.name, hash: hashOf(tool) }));
}

function pinsFrom(hashes: ReadonlyMap<string, string>): ToolPin[] {
  return [...hashes].map(([name, hash]) => ({ name, hash }));
}

/** Not RFC 8785, which refuses a lone surrogate: a server could have one said where it must not matter. */
function inOrder(_key: string, value: unknown): unknown {
  return isJsonObject(value)
    ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
    : value;
}
