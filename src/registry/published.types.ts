import type { OrgRef } from '../kernel/call-context.js';
import type { AgentId } from '../kernel/ids.js';
import type { A2aVersion, AgentExtension, AgentProvider } from '../protocol/a2a/model.js';
import type { PublishedSkill } from '../protocol/a2a/card/published-card.js';

/** How an agent of ours does its work; by `kind`, as it is stored, without secrets. */
export type ExecutorConfig =
  | { readonly kind: 'echo'; readonly delayMs?: number; readonly chunks?: number; readonly ask?: string }
  | { readonly kind: 'remote'; readonly agentId: string; readonly skillId?: string }
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'mailbox' }
  | { readonly kind: 'mcp-tool'; readonly serverId: string; readonly tool?: string }
  | LlmConfig
  | { readonly kind: 'conformance' };

/** A model behind an OpenAI-compatible endpoint; its key, if it has one, is the sealed secret of the agent. */
export interface LlmConfig {
  readonly kind: 'llm';
  /** What `/chat/completions` is added to. */
  readonly url: string;
  readonly model: string;
  readonly system?: string;
  /** Names of the org's tools, or patterns with `*`; none when absent. */
  readonly tools?: readonly string[];
  /** For each message: how often the model is asked, how long in all, and how much it may say. */
  readonly maxSteps?: number;
  readonly maxSeconds?: number;
  readonly maxTokens?: number;
  readonly temperature?: number;
}

/** Who declared an agent of ours; only those of the API are changed over the API. */
export type PublishedSource = 'api' | 'config' | 'folder' | 'conformance';

/** What the card of an agent says besides name and description. Empty lists mean: the usual ones. */
export interface PublishedAbout {
  readonly skills: readonly PublishedSkill[];
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
  readonly streaming: boolean;
  readonly pushNotifications: boolean;
  readonly extendedCard: boolean;
  readonly extensions: readonly AgentExtension[];
  readonly versions: readonly A2aVersion[];
  readonly version: string;
  readonly provider?: AgentProvider;
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
}

/** All that somebody declares of an agent of ours, checked and complete. */
export interface Definition {
  readonly name: string;
  readonly handle: string | null;
  readonly description: string;
  readonly executor: ExecutorConfig;
  readonly enabled: boolean;
  readonly acceptCleartext: boolean | null;
  readonly publishToCard: boolean;
  readonly history: 'context' | 'agent';
  readonly card: PublishedAbout;
}

/** An agent of ours as everyone behind a door knows it. */
export interface PublishedAgent {
  readonly id: AgentId;
  readonly org: OrgRef;
  readonly name: string;
  readonly handle?: string;
  readonly description: string;
  readonly executor: ExecutorConfig;
  readonly source: PublishedSource;
  /** Doors know it; those of a disabled one answer as if it did not exist (RI-03). */
  readonly enabled: boolean;
  /** Whether unencrypted messages are taken (RI-06). */
  readonly acceptCleartext: boolean;
  /** Whether its skills are on the card of its org (RE-79). */
  readonly publishToCard: boolean;
  readonly skills: readonly PublishedSkill[];
  /** Media types of parts it takes, perhaps with wildcards. */
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
  readonly streaming: boolean;
  readonly pushNotifications: boolean;
  readonly extendedCard: boolean;
  readonly extensions: readonly AgentExtension[];
  readonly versions: readonly A2aVersion[];
  /** `agent`: each caller has one lasting context; `context`: a new one whenever none is named (RY-38). */
  readonly history: 'context' | 'agent';
  /** Of the agent itself, not of a protocol. */
  readonly version: string;
  readonly provider?: AgentProvider;
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  readonly updatedAt: Date;
  /** Changes whenever anything a caller can see does. */
  readonly revision: string;
}

/** The id of a skill on a card of several agents where another one has a skill of the same id. */
export function namedSkill(agent: string, skillId: string): string {
  return `${agent}.${skillId}`;
}
