import type { Violation } from '../../kernel/errors.js';
import { trustLevels } from '../../kernel/trust.js';
import { cedarString, type Parsed } from './entity-literal.js';

/** One input of a template. All inputs are required. */
export interface TemplateInput {
  readonly type: 'text' | 'integer' | 'datetime' | 'choice';
  readonly description: string;
  readonly choices?: readonly string[];
}

export interface PolicyTemplate {
  readonly id: string;
  readonly title: string;
  readonly inputs: Readonly<Record<string, TemplateInput>>;
}

type Rendered = Readonly<Record<string, string>>;
type Writer = (literal: Rendered, raw: Rendered) => string;

const text = (description: string): TemplateInput => ({ type: 'text', description });
const agent = text('slug of the registered agent');
const skill = text('id of the skill on its card');
const group = text('name of the group');
const server = text('id of the upstream MCP server');
const skillOf = (raw: Rendered): string => `Skill::${cedarString(`${raw.agent}.${raw.skill}`)}`;
const invoke = 'action == Action::"a2a_invoke"';
const onTasks = ['task_read', 'task_cancel', 'task_subscribe', 'push_configure']
  .map((id) => `Action::"${id}"`)
  .join(', ');
const onServers = ['mcp_call', 'mcp_read', 'mcp_prompt'].map((id) => `Action::"${id}"`).join(', ');

const catalogue: readonly (PolicyTemplate & { readonly write: Writer })[] = [
  {
    id: 'permit-user',
    title: 'Let one user call one agent',
    inputs: { user: text('subject of the user’s tokens'), agent },
    write: ({ user, agent }) => `permit(principal == User::${user}, ${invoke}, resource in A2AAgent::${agent});`,
  },
  {
    id: 'permit-agent-for-group',
    title: 'Let a group see and call one agent',
    inputs: { group, agent },
    write: ({ group, agent }) =>
      `permit(principal in Group::${group}, ` +
      'action in [Action::"a2a_invoke", Action::"a2a_discover", Action::"a2a_cancel"], ' +
      `resource in A2AAgent::${agent});`,
  },
  {
    id: 'permit-server-for-group',
    title: 'Let a group use one MCP server',
    inputs: { group, server },
    write: ({ group, server }) =>
      `permit(principal in Group::${group}, ` +
      `action in [${onServers}, Action::"mcp_discover"], ` +
      `resource in McpServer::${server});`,
  },
  {
    id: 'forbid-skill',
    title: 'Forbid one skill to everyone',
    inputs: { agent, skill },
    write: (_, raw) => `forbid(principal, ${invoke}, resource == ${skillOf(raw)});`,
  },
  {
    id: 'forbid-skill-when-argument',
    title: 'Forbid one skill when an argument has a value',
    inputs: {
      agent,
      skill,
      argument: text('name of the argument'),
      value: text('the value; numbers as JSON writes them'),
    },
    write: ({ argument, value }, raw) =>
      `forbid(principal, ${invoke}, resource == ${skillOf(raw)})\n` +
      `when { context.input.hasTag(${argument}) && context.input.getTag(${argument}) == ${value} };`,
  },
  {
    id: 'forbid-tool',
    title: 'Forbid one tool of an MCP server',
    inputs: { server, tool: text('name of the tool') },
    write: (_, raw) => {
      const tool = cedarString(`${raw.server}__${raw.tool}`);
      return `forbid(principal, action == Action::"mcp_call", resource == Tool::${tool});`;
    },
  },
  {
    id: 'hide-agent',
    title: 'Hide one agent from every list',
    inputs: { agent },
    write: ({ agent }) => `forbid(principal, action == Action::"a2a_discover", resource == A2AAgent::${agent});`,
  },
  {
    id: 'require-trust-level',
    title: 'Call only agents of at least this trust level',
    inputs: { trustLevel: { type: 'choice', description: 'the lowest level to call', choices: trustLevels } },
    write: (_, raw) => {
      const enough = trustLevels
        .slice(trustLevels.findIndex((level) => level === raw.trustLevel))
        .map(cedarString)
        .join(', ');
      return `forbid(principal, ${invoke}, resource) unless { [${enough}].contains(resource.agent.trustLevel) };`;
    },
  },
  {
    id: 'limit-delegation',
    title: 'Refuse calls that come through too many agents',
    inputs: { maxDepth: { type: 'integer', description: 'hops of delegation still allowed' } },
    write: (_, raw) => `forbid(principal, ${invoke}, resource) when { context.depth > ${raw.maxDepth} };`,
  },
  {
    id: 'freeze-agent',
    title: 'Forbid calls to one agent between two times',
    inputs: {
      agent,
      from: { type: 'datetime', description: 'ISO 8601 with a time zone' },
      until: { type: 'datetime', description: 'ISO 8601 with a time zone' },
    },
    write: ({ agent, from, until }) =>
      `forbid(principal, ${invoke}, resource in A2AAgent::${agent})\n` +
      `when { context.time >= datetime(${from}) && context.time < datetime(${until}) };`,
  },
  {
    id: 'own-tasks-only',
    title: 'Only owners and admins see and change a task',
    inputs: {},
    write: () =>
      `forbid(principal, action in [${onTasks}], resource)\n` +
      'unless { resource in principal || principal in Group::"admin" };',
  },
];

/** The templates as `GET /api/policies/templates` shows them (RE-76). */
export const policyTemplates: readonly PolicyTemplate[] = catalogue.map(({ id, title, inputs }) => ({
  id,
  title,
  inputs,
}));

/**
 * Renders a policy from a template, or returns which inputs are missing or wrong (RE-76). An input can only become
 * the content of one Cedar string, or one integer.
 */
export function renderTemplate(id: string, inputs: Readonly<Record<string, unknown>>): Parsed<string> {
  const template = catalogue.find((candidate) => candidate.id === id);
  if (!template) return { ok: false, violations: [{ field: 'template', description: `there is no template "${id}"` }] };
  const violations: Violation[] = Object.keys(inputs)
    .filter((field) => !Object.hasOwn(template.inputs, field))
    .map((field) => ({ field, description: 'the template has no such input' }));
  const raw: Record<string, string> = {};
  for (const [field, input] of Object.entries(template.inputs)) {
    const value = Object.hasOwn(inputs, field) ? inputs[field] : undefined;
    const read = readInput(input, value);
    if ('value' in read) raw[field] = read.value;
    else violations.push({ field, description: read.problem });
  }
  if (violations.length > 0) return { ok: false, violations };
  const literal = Object.fromEntries(Object.entries(raw).map(([field, value]) => [field, cedarString(value)]));
  return { ok: true, value: `${template.write(literal, raw)}\n` };
}

type Read = { readonly value: string } | { readonly problem: string };

function readInput({ type, choices }: TemplateInput, value: unknown): Read {
  if (value === undefined || value === null || value === '') return { problem: 'required' };
  if (type === 'integer') {
    const whole = typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
    return whole ? { value: String(value) } : { problem: 'must be a whole number, not negative' };
  }
  if (typeof value !== 'string') return { problem: 'must be a string' };
  if (type === 'choice')
    return choices?.includes(value) ? { value } : { problem: `must be one of ${choices?.join(', ')}` };
  if (type === 'datetime') return readMoment(value);
  if (value.length > 256) return { problem: 'must be at most 256 characters' };
  return value.isWellFormed() ? { value } : { problem: 'must be well-formed Unicode' };
}

function readMoment(value: string): Read {
  const zoned = /^\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)$/.test(value);
  const moment = zoned ? Date.parse(value) : NaN;
  if (Number.isNaN(moment)) return { problem: 'must be an ISO 8601 time with a zone' };
  return { value: new Date(moment).toISOString() };
}
