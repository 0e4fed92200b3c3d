import type { OrgRef } from '../kernel/call-context.js';
import type { AgentId } from '../kernel/ids.js';
import type { PublicKey } from '../protocol/e2ee/keys.js';
import type { A2aVersion, AgentExtension, AgentProvider } from '../protocol/a2a/model.js';
import type { PublishedSkill } from '../protocol/a2a/card/published-card.js';

/** How a published agent does its work; discriminated by `kind`. Stored in this form, without secrets. */
export type ExecutorConfig =
  | { readonly kind: 'echo'; readonly delayMs?: number; readonly chunks?: number; readonly ask?: string }
  | { readonly kind: 'remote'; readonly agentId: string; readonly skillId?: string }
  | { readonly kind: 'http'; readonly url: string }
  | { readonly kind: 'mailbox' }
  | { readonly kind: 'mcp-tool'; readonly serverId: string; readonly tool?: string }
  | LlmConfig
  | RoutesConfig
  | { readonly kind: 'conformance' };

/** The executors that a route can lead to: those without a secret. */
export type RoutedExecutor = Extract<ExecutorConfig, { readonly kind: 'echo' | 'remote' | 'mcp-tool' }>;

export interface Route {
  /** Words and phrases. The route is taken when one of them is in the first message of a task. */
  readonly when: readonly string[];
  readonly executor: RoutedExecutor;
}

/** Several executors behind one agent; the text of a message chooses. */
export interface RoutesConfig {
  readonly kind: 'routes';
  readonly routes: readonly Route[];
  /** The executor for messages that no route fits. */
  readonly otherwise: RoutedExecutor;
}

/**
 * A model behind an OpenAI-compatible endpoint. Its key is optional and is stored as the sealed secret of the agent.
 */
export interface LlmConfig {
  readonly kind: 'llm';
  /** Base URL; the gateway appends `/chat/completions`. */
  readonly url: string;
  readonly model: string;
  readonly system?: string;
  /** Names of tools of the org, or patterns with `*`. Undefined: no tools. */
  readonly tools?: readonly string[];
  /** Limits for each message: calls of the model, seconds in total, and tokens of one answer. */
  readonly maxSteps?: number;
  readonly maxSeconds?: number;
  readonly maxTokens?: number;
  readonly temperature?: number;
}

/** Source of the declaration of a published agent. The API changes only agents with the source `api`. */
export type PublishedSource = 'api' | 'config' | 'folder' | 'conformance';

/** Content of an agent's card except name and description. An empty list means the default. */
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

/** The complete, checked declaration of a published agent. */
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

/** A published agent as the code behind a door sees it. */
export interface PublishedAgent {
  readonly id: AgentId;
  readonly org: OrgRef;
  readonly name: string;
  readonly handle?: string;
  readonly description: string;
  readonly executor: ExecutorConfig;
  readonly source: PublishedSource;
  /** False: all doors answer as if the agent did not exist (RI-03). */
  readonly enabled: boolean;
  /** True: the agent accepts unencrypted messages (RI-06). */
  readonly acceptCleartext: boolean;
  /** Public keys for end-to-end encryption, the newest of each use last. */
  readonly keys: readonly PublicKey[];
  /** True: the skills of the agent are on the card of its org (RE-79). */
  readonly publishToCard: boolean;
  readonly skills: readonly PublishedSkill[];
  /** Media types of parts that the agent accepts; wildcards are possible. */
  readonly inputModes: readonly string[];
  readonly outputModes: readonly string[];
  readonly streaming: boolean;
  readonly pushNotifications: boolean;
  readonly extendedCard: boolean;
  readonly extensions: readonly AgentExtension[];
  readonly versions: readonly A2aVersion[];
  /**
   * `agent`: each caller has one permanent context. `context`: a message without a context starts a new one (RY-38).
   */
  readonly history: 'context' | 'agent';
  /** Version of the agent itself, not of a protocol. */
  readonly version: string;
  readonly provider?: AgentProvider;
  readonly documentationUrl?: string;
  readonly iconUrl?: string;
  readonly updatedAt: Date;
  /** Changes whenever something that a caller can see changes. */
  readonly revision: string;
}

/** Returns the id of a skill on a shared card when another agent on it has a skill with the same id. */
export function namedSkill(agent: string, skillId: string): string {
  return `${agent}.${skillId}`;
}
