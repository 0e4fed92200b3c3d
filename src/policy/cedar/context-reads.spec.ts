import { contextReads, type ContextReads } from './context-reads.js';
import { parsePolicies } from './validate.js';

const readsOf = (condition: string): ContextReads => {
  const { policies, violations } = parsePolicies(`permit(principal, action, resource) when { ${condition} };`);
  expect(violations).toEqual([]);
  return contextReads(policies.map(({ json }) => json));
};
const some = (...names: string[]): Set<string> => new Set(names);

it.each([
  ['principal.role == "admin"', some(), some()],
  ['"context" == "depth"', some(), some()],
  ['{Var: "context"}.Var == "context"', some(), some()],
  ['context.depth > 1', some('depth'), some()],
  ['context["surface"] == "mcp" || context has time', some('surface', 'time'), some()],
  ['context has input.branch', some('input'), 'all'],
  ['context.time.toDate() == context.time', some('time'), some()],
  ['context.input.hasTag("a") && context.input.getTag("b") == "x"', some('input'), some('a', 'b')],
  ['context.input.hasTag(context.surface)', some('input', 'surface'), 'all'],
  ['context.input == Input::"input"', some('input'), 'all'],
  ['Input::"input".hasTag("a")', some('input'), 'all'],
  ['(if true then context else context).depth > 1', 'all', 'all'],
  ['[context.input].contains(context.input)', some('input'), 'all'],
  [
    'if context.depth > 1 then [context.surface].contains("x") else !(context.time == context.time)',
    some('depth', 'surface', 'time'),
    some(),
  ],
])('%s', (condition, attributes, tags) => {
  expect(readsOf(condition)).toEqual({ attributes, tags, singleTasks: false });
});

describe('policies that name a single task', () => {
  const named = (policy: string): boolean =>
    contextReads(parsePolicies(policy).policies.map(({ json }) => json)).singleTasks;

  it.each([
    ['permit(principal, action, resource == Task::"t");', true],
    ['permit(principal, action, resource in Task::"t");', true],
    ['permit(principal, action, resource) unless { resource == Task::"t" };', true],
    ['permit(principal, action, resource) when { [Task::"t"].contains(resource) };', true],
    ['permit(principal, action, resource is Task) when { resource.owner == "t" };', false],
    ['permit(principal, action, resource) when { resource in principal };', false],
    ['permit(principal == User::"Task", action, resource);', false],
  ])('%s: %s', (policy, expected) => {
    expect(named(policy)).toBe(expected);
  });
});
