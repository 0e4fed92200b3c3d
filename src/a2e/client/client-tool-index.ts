import { strategies, type Strategy } from '../../upstreams/upstream.types.js';
import type { ServerInfo } from './client-options.js';
import { A2EClientError } from './client-errors.js';

interface Place {
  readonly serverId: string;
  /** The name that the gateway's policies have for it. */
  readonly toolName: string;
}

/** Which servers have a tool, and whose turn it is (AE-72…AE-74). */
export class ToolIndex {
  private places = new Map<string, Place[]>();
  private readonly atWork = new Map<string, number>();
  private turn = 0;

  fill(servers: readonly ServerInfo[]): void {
    this.places = new Map();
    for (const { server_id: serverId, tools } of servers)
      for (const { name, tool_name: toolName } of tools)
        for (const known of new Set([name, toolName]))
          this.places.set(known, [...(this.places.get(known) ?? []), { serverId, toolName }]);
  }

  /** In order of their ids; by the tool's own name, or the whole one. */
  serversWith(tool: string): string[] {
    return (this.places.get(tool) ?? []).map(({ serverId }) => serverId);
  }

  /** Runs the work at one of the servers that have the tool. Rejects with `mcp_tool_not_found` when none has. */
  async at<Result>(tool: string, strategy: Strategy, work: (place: Place) => Promise<Result>): Promise<Result> {
    const places = this.places.get(tool) ?? [];
    const place = places[this.choose(places, strategy)];
    if (!place) throw noServerFor(tool);
    this.count(place, 1);
    try {
      return await work(place);
    } finally {
      this.count(place, -1);
    }
  }

  private choose(places: readonly Place[], strategy: Strategy): number {
    if (strategy === 'first') return 0;
    const turn = this.turn++;
    if (strategy === 'round-robin') return turn % Math.max(1, places.length);
    const loads = places.map(({ serverId }) => this.atWork.get(serverId) ?? 0);
    return loads.indexOf(Math.min(...loads));
  }

  private count({ serverId }: Place, by: number): void {
    this.atWork.set(serverId, (this.atWork.get(serverId) ?? 0) + by);
  }
}

/** Throws `a2e_invalid`, which names what there is. */
export function requireStrategy(given: string): Strategy {
  const known = strategies.find((name) => name === given);
  if (known) return known;
  throw new A2EClientError('a2e_invalid', `there is no strategy "${given}": it is ${strategies.join(', ')}`);
}

export function noServerFor(tool: string): A2EClientError {
  return new A2EClientError('mcp_tool_not_found', `No server found for tool: ${tool}`);
}
