import { parseLegacyAgentCard } from '@a2a-js/sdk/compat/v0_3/client';
import { DefaultRequestHandler, InMemoryTaskStore } from '@a2a-js/sdk/server';
import { jsonRpcHandler, UserBuilder } from '@a2a-js/sdk/server/express';
import express, { type NextFunction, type Request, type Response } from 'express';
import { runWhenEntry, serveAgent, type RunningAgent } from './serve-agent.js';
import { requiredText, seedOf, SkillExecutor } from './skill-executor.js';

const deploySkill = {
  id: 'deploy',
  name: 'Deploy',
  description: 'Deploys a branch of a project.',
  tags: ['deploy', 'release'],
  examples: ['Deploy the main branch of the shop'],
  inputSchema: {
    type: 'object',
    properties: { projectId: { type: 'string' }, branch: { type: 'string' } },
    required: ['projectId'],
  },
};

function deploy(args: Record<string, unknown>): Record<string, unknown> {
  const projectId = requiredText(args, 'projectId');
  const branch = typeof args.branch === 'string' ? args.branch : 'main';
  const deploymentId = `dpl_${seedOf(`${projectId} ${branch}`).toString(36)}`;
  return { deploymentId, projectId, branch, status: 'ready', url: `https://${deploymentId}.example.com` };
}

function cardAt(url: string) {
  return {
    protocolVersion: '0.3.0',
    name: 'Deploy Ops',
    description: 'Pretends to deploy projects.',
    version: '1.0.0',
    url,
    preferredTransport: 'JSONRPC',
    capabilities: { streaming: true, pushNotifications: false, stateTransitionHistory: false },
    defaultInputModes: ['application/json', 'text/plain'],
    defaultOutputModes: ['application/json'],
    skills: [deploySkill],
  };
}

interface SkillMessage {
  skill?: { skillId?: string };
  metadata?: Record<string, unknown>;
}

/**
 * Copies the skill id to the metadata: callers of v0.3 name the skill as `message.skill.skillId`, and the SDK drops
 * members that the schema does not have.
 */
function keepSkillId(request: Request, _response: Response, next: NextFunction): void {
  const message = (request.body as { params?: { message?: SkillMessage } } | undefined)?.params?.message;
  const skillId = message?.skill?.skillId;
  if (message && typeof skillId === 'string') message.metadata = { ...message.metadata, skillId };
  next();
}

/**
 * Starts a remote agent of A2A v0.3 for the demo, built with the official SDK's compatibility server: skill `deploy`.
 */
export function startDeployAgent(port = 0): Promise<RunningAgent> {
  return serveAgent(port, (url) => {
    const card = cardAt(url);
    const executor = new SkillExecutor({ deploy }, 'projectId');
    // A card of v0.3 states 0.3.0, while the SDK compares the A2A-Version header with 0.3.
    const requestHandler = new DefaultRequestHandler(
      parseLegacyAgentCard({ ...card, protocolVersion: '0.3' }),
      new InMemoryTaskStore(),
      executor,
    );
    const legacyCompat = { enabled: true };
    return express()
      .get('/.well-known/agent-card.json', (_request, response) => void response.json(card))
      .use(express.json(), keepSkillId)
      .use('/', jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
  });
}

void runWhenEntry(import.meta.url, startDeployAgent);
