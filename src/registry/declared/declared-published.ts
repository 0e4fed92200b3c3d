import { Inject, Injectable } from '@nestjs/common';
import type { OrgRef } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import { SETTINGS, type Settings } from '../../platform/config/settings.js';
import { TxRunner } from '../../platform/database/tx.js';
import { invalidBody } from '../../platform/http/request-checks.js';
import { LOGGER, type Logger } from '../../platform/telemetry/logger.js';
import { conformanceAgent } from './conformance-agent.js';
import { PublishedChecks } from '../published/published-checks.js';
import { apiKeyOf, definitionOf } from '../published/published-definition.js';
import type { PublishedSource } from '../published.types.js';
import { PublishedWriter, type Wanted } from '../published/published-writer.js';
import { PublishAgent } from '../published/publishing.types.js';

/** An agent that a file or a folder declares: its unchecked members, or the error that reading them gave. */
export interface Declared {
  readonly name: string;
  readonly members: Readonly<Record<string, unknown>> | RialtoError;
  /** Probable mistakes of the declaration, for the log. */
  readonly doubts?: readonly string[];
}

type DeclaredServer = Settings['configFile']['mcpServers'][number];
type Refused = readonly [agent: string, why: RialtoError];

/**
 * Reconciles published agents with their declarations: creates, updates, and archives those that are no longer
 * declared (AN-96, RY-01).
 */
@Injectable()
export class DeclaredPublished {
  /** Problems of the previous run, so that each is logged once. */
  private readonly reported = new Map<PublishedSource, ReadonlySet<string>>();

  constructor(
    @Inject(SETTINGS) private readonly settings: Settings,
    private readonly writer: PublishedWriter,
    private readonly checks: PublishedChecks,
    private readonly txs: TxRunner,
    @Inject(LOGGER) private readonly log: Logger,
  ) {}

  /**
   * Reconciles the agents of `rialto.config.json`, one agent for each server of `mcp.config.json`, and the
   * conformance agent if it is enabled. Idempotent.
   */
  async reconcile(org: OrgRef): Promise<void> {
    const { configFile, RIALTO_CONFORMANCE_AGENT: profile } = this.settings;
    const declared = configFile.published.map(({ apiKey: _secret, ...members }) => ({ name: members.name, members }));
    const names = new Set(declared.map(({ name }) => name));
    const there = await this.checks.declaredServers(org);
    // A skipped server may have the id of another server, which the operator did not choose to publish.
    const isMeant = ({ id, isAgent }: DeclaredServer): boolean => isAgent && !names.has(id) && there.has(id);
    await this.declare(org, 'config', [...declared, ...configFile.mcpServers.filter(isMeant).map(agentOf)]);
    await this.align(org, 'conformance', profile ? [{ definition: conformanceAgent(profile) }] : [], []);
  }

  /**
   * Makes the agents of one source match the declared ones. A wrong declaration is logged and leaves its agent
   * unchanged.
   */
  async declare(org: OrgRef, source: PublishedSource, declared: readonly Declared[]): Promise<void> {
    const wanted = new Map<string, Wanted>();
    const bad: Refused[] = [];
    for (const agent of declared) {
      for (const doubt of agent.doubts ?? []) this.log.warn({ agent: agent.name, source }, doubt);
      try {
        if (wanted.has(agent.name))
          throw new RialtoError('slug_taken', { message: 'another declared agent has this name' });
        const given = await this.checks.admitted(org, accepted(agent));
        wanted.set(agent.name, { definition: definitionOf(given), apiKey: apiKeyOf(given) ?? null });
      } catch (error) {
        bad.push([agent.name, declarationError(error)]);
      }
    }
    await this.align(org, source, [...wanted.values()], bad);
  }

  private async align(org: OrgRef, source: PublishedSource, wanted: readonly Wanted[], bad: Refused[]): Promise<void> {
    const retained = new Set([...wanted.map(({ definition: { name } }) => name), ...bad.map(([name]) => name)]);
    await this.txs.run(async (tx) => {
      await this.writer.archiveOthers(tx, org.id, source, retained);
      for (const one of wanted) {
        try {
          await this.writer.alignDeclared(tx, org.id, source, one);
        } catch (error) {
          bad.push([one.definition.name, declarationError(error)]);
        }
      }
    });
    this.logNew(source, bad);
  }

  /** Logs the problems that the previous run did not have. */
  private logNew(source: PublishedSource, bad: readonly Refused[]): void {
    const before = this.reported.get(source);
    for (const [agent, { code, message }] of bad)
      if (!before?.has(`${agent}: ${message}`))
        this.log.error({ agent, source, code }, `a declared agent was not changed: ${message}`);
    this.reported.set(source, new Set(bad.map(([agent, { message }]) => `${agent}: ${message}`)));
  }
}

/** Returns the error of a declaration. Rethrows an internal error. */
function declarationError(error: unknown): RialtoError {
  const known = RialtoError.from(error);
  if (known.code === 'internal') throw error;
  return known;
}

/** Returns the agent that offers the tools of a server as skills, on the public card (AN-97). */
function agentOf({ id, name }: DeclaredServer): Declared {
  const description = `The tools of the MCP server ${name}.`;
  const executor = { kind: 'mcp-tool', serverId: id };
  return { name: id, members: { name: id, description, executor, publishToCard: true } };
}

/** Throws `invalid_params` when the API would refuse the agent. A declared agent is enabled by default. */
function accepted({ name, members }: Declared): PublishAgent {
  if (members instanceof RialtoError) throw members;
  const usual = { name, description: `The agent ${name}.`, executor: { kind: 'echo' }, a2a_enabled: true };
  const checked = PublishAgent.safeParse({ ...usual, ...members });
  if (!checked.success) throw invalidBody(checked.error.issues);
  return checked.data;
}
