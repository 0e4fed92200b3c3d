import { strategies, type Strategy } from '../../upstreams/upstream.types.js';
import type { ServerInfo } from './client-options.js';
import { A2EClientError } from './client-errors.js';

interface Place {
  readonly serverId: string;
  /** Name of the tool in policies of the gateway. */
  readonly toolName: string;
}

/** Knows which servers have a tool, and chooses one of them (AE-72…AE-74). */
export class ToolIndex {
  private places = new Map<string, Place[]>();
  private readonly runningCalls = new Map<string, number>();
  private turn = 0;

  fill(servers: readonly ServerInfo[]): void {
    this.places = new Map();
    for (const { server_id: serverId, tools } of servers)
      for (const { name, tool_name: toolName } of tools)
        for (const known of new Set([name, toolName]))
          this.places.set(known, [...(this.places.get(known) ?? []), { serverId, toolName }]);
  }

  /** Ids of the servers that have a tool, in the order of the ids; accepts its own name or its full name. */
  serversWith(tool: string): string[] {
    return (this.places.get(tool) ?? []).map(({ serverId }) => serverId);
  }

  /**
   * Runs the work at one of the servers that have the tool. Rejects with `mcp_tool_not_found` when no server has it.
   */
  async callAtServer<Result>(
    tool: string,
    strategy: Strategy,
    work: (place: Place) => Promise<Result>,
  ): Promise<Result> {
    const places = this.places.get(tool) ?? [];
    const place = places[this.choosePlace(places, strategy)];
    if (!place) throw noServerFor(tool);
    this.addCalls(place, 1);
    try {
      return await work(place);
    } finally {
      this.addCalls(place, -1);
    }
  }

  private choosePlace(places: readonly Place[], strategy: Strategy): number {
    if (strategy === 'first') return 0;
    const turn = this.turn++;
    if (strategy === 'round-robin') return turn % Math.max(1, places.length);
    const loads = places.map(({ serverId }) => this.runningCalls.get(serverId) ?? 0);
    return loads.indexOf(Math.min(...loads));
  }

  private addCalls({ serverId }: Place, by: number): void {
    this.runningCalls.set(serverId, (this.runningCalls.get(serverId) ?? 0) + by);
  }
}

/** Checks the name of a strategy. Throws `a2e_invalid` with the known names. */
export function requireStrategy(given: string): Strategy {
  const known = strategies.find((name) => name === given);
  if (known) return known;
  throw new A2EClientError('a2e_invalid', `unknown strategy "${given}"; use one of ${strategies.join(', ')}`);
}

export function noServerFor(tool: string): A2EClientError {
  return new A2EClientError('mcp_tool_not_found', `No server found for tool: ${tool}`);
}
