import type { JsonObject } from '../../kernel/json.js';
import { cleartextFacts } from '../../kernel/trust.js';
import fc from 'fast-check';
import { checkParseEntities } from '@cedar-policy/cedar-wasm/nodejs';
import type { Principal } from '../../kernel/call-context.js';
import { actions } from '../../kernel/verbs.js';
import { cedarSchema } from './cedar-schema.js';
import {
  contextOf,
  entitiesOf,
  inputEntity,
  inputLimits,
  inputTags,
  parentOf,
  principalEntity,
  type PolicyCall,
} from './entities.js';

const tagsOf = (args: object, read: Parameters<typeof inputTags>[1] = 'all') =>
  inputTags({ args: args as JsonObject }, read);

const anyPrincipal = fc.record({
  kind: fc.constantFrom<Principal['kind']>('user', 'agent', 'service', 'anonymous'),
  id: fc.string({ unit: 'grapheme', minLength: 1 }),
  role: fc.constantFrom<Principal['role']>('viewer', 'member', 'admin'),
  groups: fc.array(fc.string({ unit: 'grapheme' })),
});
const anyFacts = fc.option(
  fc.record(
    {
      url: fc.webUrl(),
      skills: fc.array(fc.string({ unit: 'grapheme' })),
      trustLevel: fc.constantFrom('trusted', 'standard'),
    },
    { requiredKeys: [] },
  ),
  { nil: undefined },
);

it('creates entities that fit the schema for any call', () => {
  fc.assert(
    fc.property(
      anyPrincipal,
      anyFacts,
      anyFacts,
      fc.string({ unit: 'grapheme' }),
      fc.dictionary(
        fc.string({ unit: 'grapheme' }),
        fc.oneof(fc.string({ unit: 'grapheme' }), fc.integer(), fc.boolean(), fc.constant(null)),
      ),
      fc.option(fc.record({ quarantined: fc.boolean() }), { nil: undefined }),
      (principal, caller, agent, id, args, tool) => {
        for (const { resource: type } of Object.values(actions)) {
          const call: PolicyCall = {
            principal,
            caller,
            action: 'a2a_invoke',
            resource: { type, id },
            agent,
            tool,
            surface: 'a2a',
            depth: 0,
            time: 0,
            args,
          };
          const entities = [...entitiesOf(call), inputEntity(tagsOf(args).tags)];
          expect(checkParseEntities({ entities, schema: cedarSchema })).toEqual({ type: 'success' });
        }
      },
    ),
    { numRuns: 40 },
  );
});

it('puts a caller in the group of its role and its groups, but ignores groups with the name of a role', () => {
  const principal: Principal = { kind: 'service', id: 'ci', role: 'member', groups: ['ops', 'admin', 'viewer'] };
  expect(principalEntity(principal)).toEqual({
    uid: { type: 'Service', id: 'ci' },
    attrs: { role: 'member' },
    parents: [
      { type: 'Group', id: 'member' },
      { type: 'Group', id: 'ops' },
    ],
  });
});

it('treats an unknown agent as untrusted', () => {
  expect(principalEntity({ kind: 'agent', id: 'x', role: 'member', groups: [] }).attrs).toEqual({
    role: 'member',
    agentUrl: '',
    skills: [],
    trustLevel: 'untrusted',
    quarantined: false,
  });
});

it('takes the parent of a resource from its id, unless it is given', () => {
  expect(parentOf({ type: 'Skill', id: 'ops.deploy.now' })).toBe('ops');
  expect(parentOf({ type: 'Tool', id: 'github__create__issue' })).toBe('github');
  expect(parentOf({ type: 'Tool', id: 'github__x', parent: 'other' })).toBe('other');
  expect(parentOf({ type: 'Resource', id: 'file:///a__b' })).toBe('');
  expect(parentOf({ type: 'Tool', id: 'bare' })).toBe('');
});

it('makes the owner of a task its parent and gives its agent', () => {
  const call: PolicyCall = {
    principal: { kind: 'user', id: 'bob', role: 'member', groups: [] },
    action: 'task_read',
    resource: { type: 'Task', id: '1' },
    task: { agent: 'echo', owner: { kind: 'agent', id: 'ops' } },
    surface: 'a2a',
    depth: 0,
    time: 0,
  };
  expect(entitiesOf(call)[1]).toEqual({
    uid: { type: 'Task', id: '1' },
    attrs: { agent: 'echo', owner: 'ops' },
    parents: [{ type: 'A2AAgent', id: 'ops' }],
  });
  expect(entitiesOf({ ...call, task: undefined })[1]).toMatchObject({ attrs: { agent: '', owner: '' }, parents: [] });
});

it('makes a tag of each scalar argument, as JSON text, and ignores null, objects and arrays', () => {
  const args = {
    text: 'x',
    count: 1.5,
    big: 1e21,
    dry: true,
    none: null,
    list: ['a'],
    deep: { a: 1 },
    __proto__: 'no',
  };
  expect(tagsOf(args)).toEqual({ tags: { text: 'x', count: '1.5', big: '1e+21', dry: 'true' }, unreadable: [] });
  expect(tagsOf(args, new Set(['count', 'absent', 'toString']))).toEqual({ tags: { count: '1.5' }, unreadable: [] });
  expect(tagsOf(JSON.parse('{"__proto__":"x"}') as never)).toEqual({
    tags: JSON.parse('{"__proto__":"x"}'),
    unreadable: [],
  });
});

it('reports arguments that are too long or too many instead of dropping them', () => {
  expect(
    tagsOf({ long: 'é'.repeat(inputLimits.bytes / 2 + 1), short: 'é'.repeat(inputLimits.bytes / 2) }).unreadable,
  ).toEqual(['long']);
  const many = Object.fromEntries(Array.from({ length: inputLimits.tags + 1 }, (_, index) => [`a${index}`, index]));
  expect(tagsOf(many).unreadable).toEqual([`a${inputLimits.tags}`]);
});

it('gives only the context attributes that are read', () => {
  const call = { surface: 'mcp', depth: 2, time: 0 } as PolicyCall;
  expect(contextOf(call, new Set(['depth']))).toEqual({ depth: 2 });
  expect(contextOf(call)).toEqual({
    surface: 'mcp',
    depth: 2,
    time: { __extn: { fn: 'datetime', arg: '1970-01-01T00:00:00.000Z' } },
    approved: false,
    input: { __entity: { type: 'Input', id: 'input' } },
    ...{ encrypted: false, encryptedBytes: 0, trustTier: 0 },
  });
  const message = { encrypted: true, encryptedBytes: 80, trustTier: 3 } as const;
  expect(contextOf({ ...call, message }, new Set(['trustTier', 'encryptedBytes']))).toEqual({
    encryptedBytes: 80,
    trustTier: 3,
  });
});

it('reports arguments with several values, when a policy reads them', () => {
  const call = { args: { a: 1, b: 2 }, message: { ...cleartextFacts, unclear: ['a'] } };
  expect(inputTags(call, 'all').unreadable).toEqual(['a']);
  expect(inputTags(call, new Set(['b']))).toEqual({ tags: { b: '2' }, unreadable: [] });
});
