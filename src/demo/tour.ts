import { table } from '../cli/io.js';
import type { GatewayUser } from './gateway-user.js';
import type { Program } from './processes.js';

/** The agents of the tour and the user who calls them. */
export interface Stage {
  readonly user: GatewayUser;
  readonly weather: Program;
  readonly deploy: Program;
}

/** One step: its title, and the lines that the running system printed for it. */
export interface Step {
  readonly title: string;
  readonly run: (stage: Stage) => Promise<string[]>;
}

const policyName = 'no-deploys-of-main';
const skill = 'deploy_ops.deploy';
const deployTool = 'a2a_deploy_ops_deploy';
const policyText = `forbid(principal, action == Action::"a2a_invoke", resource == Skill::"${skill}")
when { context.input.hasTag("branch") && context.input.getTag("branch") == "main" };`;

interface AgentAnswer {
  name: string;
  slug: string;
  health: string;
  protocolVersions: string[];
  skills: { toolName: string; alias: string }[];
}

interface AuditAnswer {
  items: {
    at: string;
    verb: string;
    outcome: string;
    resource: { type: string; id: string };
    decision?: { policies: string[] };
    chain: { sequence: number } | null;
  }[];
}

/** The steps of the tour: register, list, call, forbid, ask why, and read the audit. */
export const steps: readonly Step[] = [
  {
    title: 'Register two agents by their address; Rialto reads their cards',
    run: async ({ user, weather, deploy }) => [
      ...(await register(user, weather.ready, 'weather')),
      ...(await register(user, deploy.ready, 'deploy_ops')),
    ],
  },
  {
    title: 'List them as tools with an MCP client',
    run: async ({ user }) => {
      const version = await user.connect();
      const tools = await user.tools();
      return [
        `protocol ${version}`,
        table(tools.map(({ name, description }) => [name, description?.split('\n').at(-1) ?? ''])),
      ];
    },
  },
  {
    title: 'Call a skill of each agent',
    run: async ({ user }) => [
      await user.call('a2a_weather_forecast', { city: 'Lisbon', days: 2 }),
      await user.call(deployTool, { projectId: 'shop', branch: 'preview' }),
    ],
  },
  {
    title: 'Forbid deployments of main with a Cedar policy',
    run: async ({ user }) => {
      const { version } = await user.api<{ version: number }>('POST', '/api/policies', {
        name: policyName,
        text: policyText,
      });
      return [policyText, `stored as ${policyName}, version ${version}`];
    },
  },
  { title: 'Try it', run: tryForbidden },
  {
    title: 'Ask why, without calling anything',
    run: async ({ user }) => [
      await ask(user, { projectId: 'shop', branch: 'main' }),
      await ask(user, { projectId: 'shop', branch: 'preview' }),
    ],
  },
  { title: 'Read the audit, and verify that it was not changed', run: readAudit },
];

async function register(user: GatewayUser, url: string, slug: string): Promise<string[]> {
  const agent = await user.api<AgentAnswer>('POST', '/api/a2a/agents', { url, slug });
  const versions = agent.protocolVersions.join(', ');
  return [
    `${agent.name} is ${agent.slug}: A2A ${versions}, ${agent.health}`,
    ...agent.skills.map(({ toolName, alias }) => `  skill ${toolName}, as a tool ${alias}`),
  ];
}

async function tryForbidden({ user, deploy }: Stage): Promise<string[]> {
  const before = deploy.lines.length;
  const { code, message } = await user.refused(deployTool, { projectId: 'shop', branch: 'main' });
  if (code !== -32003 || !message.includes(policyName))
    throw new Error(`the refusal does not name the policy: ${code} ${message}`);
  const allowed = await user.call(deployTool, { projectId: 'shop', branch: 'preview' });
  const received = (await deploy.linesFrom(before)).length;
  if (received !== 1) throw new Error(`the agent received ${received} messages, one was expected`);
  return [
    `branch main:    error ${code}: ${message}`,
    `branch preview: ${allowed}`,
    `the agent received ${received} message for these two calls: the forbidden one was never sent`,
  ];
}

async function ask(user: GatewayUser, input: { projectId: string; branch: string }): Promise<string> {
  const { decision, policies, reason } = await user.api<{ decision: string; policies: string[]; reason: string }>(
    'POST',
    '/api/policies/test',
    { principal: 'User::"bob"', action: 'a2a_invoke', resource: `Skill::"${skill}"`, input },
  );
  return `branch ${`${input.branch}:`.padEnd(8)} ${decision} by ${policies.join(', ')} (${reason})`;
}

async function readAudit({ user }: Stage): Promise<string[]> {
  const result = await user.api<{ valid: boolean; eventCount: number; unsealed: number }>('POST', '/api/audit/verify');
  if (!result.valid) throw new Error('the chain of the audit does not verify');
  const { items } = await user.api<AuditAnswer>('GET', '/api/audit/events?limit=20');
  const rows = items
    .reverse()
    .map(({ chain, at, verb, outcome, decision }) => [
      String(chain?.sequence ?? ''),
      at.slice(11, 23),
      verb,
      outcome,
      decision?.policies.join(', ') ?? '',
    ]);
  return [
    table([['#', 'TIME', 'ACT', 'OUTCOME', 'DECIDED BY'], ...rows]),
    `chain of ${result.eventCount} events: valid, ${result.unsealed} unsealed`,
  ];
}
