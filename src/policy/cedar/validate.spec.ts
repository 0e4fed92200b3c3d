import { positionAt, scanPolicies } from './policy-source.js';
import { validatePolicyText } from './validate.js';

const wrong = (text: string, name = 'mine') => validatePolicyText(name, text);
const permit = 'permit(principal, action, resource)';

it('accepts the documented example, and several policies with comments', () => {
  const text = `// keep production safe
forbid(principal, action == Action::"a2a_invoke", resource == Skill::"vercel_ops.deploy")
when { context.input.hasTag("branch") && context.input.getTag("branch") == "main" }; // "unbalanced ((((
@id("rest") permit(principal is User, action, resource) unless { principal.role == "viewer; }" };
// end`;
  expect(wrong(text)).toEqual([]);
});

it.each([
  ['an unknown attribute', `${permit} when { context.inptu == "x" };`, /inptu/, /input/],
  ['an attribute of another type', `${permit} when { principal.trustLevel == "x" };`, /trustLevel/, /role/],
  ['an unknown entity type', 'permit(principal == Usr::"x", action, resource);', /Usr/, /User/],
  ['an unknown action', 'forbid(principal, action == Action::"a2a_invok", resource);', /a2a_invok/, /a2a_invoke/],
  ['a tag that may be missing', `${permit} when { context.input.getTag("a") == "x" };`, /tag/, /hasTag/],
  ['an argument as an attribute', `${permit} when { context.input.city == "x" };`, /`city`/, /hasTag\("city"\) &&/],
  ['a bad time', `${permit} when { context.time < datetime("soon") };`, /datetime/, /YYYY/],
])('abuse 14: %s is refused once, with a position and a hint', (_, text, description, hint) => {
  const violations = wrong(`\n  ${text}`);
  expect(violations[0]).toMatchObject({ field: 'text', line: 2 });
  expect(violations[0]!.description).toMatch(description);
  expect(violations[0]!.description).not.toMatch(/policy `/);
  expect(violations[0]!.hint).toMatch(hint);
});

it.each([
  ['a parse error', `${permit} when { 1 + };`, /unexpected/],
  ['a missing end', 'permit(principal, action, resource', /unexpected/],
  ['a template', 'permit(principal == ?principal, action, resource);', /template|slot/],
  ['an open string', 'permit(principal == User::"x, action, resource);', /not closed/],
  [
    'a policy that can never apply',
    'forbid(principal, action == Action::"a2a_invoke", resource is Org);',
    /impossible|applicable/,
  ],
  ['a condition that is never true', `${permit} when { false };`, /impossible/],
  ['text that reads backwards', 'permit(principal == User::"a\u202eb", action, resource);', /BIDI|control/i],
  ['more than 16 KiB', `// ${'x'.repeat(16_384)}\n${permit};`, /16 KiB/],
  ['more than 20 policies', `${permit};`.repeat(21), /more than 20/],
  ['deep brackets', `${permit} when { ${'('.repeat(40)}true${')'.repeat(40)} };`, /nested/],
  [
    'brackets hidden behind a comment and a string',
    `${permit} when { "\\" == "//\\"" || //"\r${'('.repeat(40)}true${')'.repeat(40)} };`,
    /nested|closed/,
  ],
  ['a long chain', `${permit} when { ${'context.depth == 1 || '.repeat(71)}true };`, /operators/],
  [
    'a deep mix',
    `${permit} when { ${'(true == '.repeat(30)}${'true && '.repeat(60)}true${')'.repeat(30)} };`,
    /deeper than/,
  ],
  ['thousands of operators', `${permit} when { ${'true && '.repeat(990)}true };`, /operators/],
  ['hundreds of conditionals', `${permit} when { ${'if true then true else '.repeat(120)}true };`, /operators/],
  ['a lone surrogate', 'permit(principal == User::"\ud800", action, resource);', /well-formed/],
  ['nothing', '  // nothing\n', /no policy/],
  ['a reserved id', `@id("rialto:mine") ${permit};`, /rialto:/],
])('abuse 14: %s is refused', (_, text, description) => {
  expect(
    wrong(text)
      .map((violation) => violation.description)
      .join(),
  ).toMatch(description);
});

it('refuses reserved and empty names', () => {
  expect(wrong(`${permit};`, 'rialto:x')).toMatchObject([{ field: 'name' }]);
  expect(wrong(`${permit};`, ' ')).toMatchObject([{ field: 'name' }]);
});

it('gives the position of the character, also after letters of several bytes', () => {
  expect(wrong(`// ééé 🙂\n@id("é🙂") ${permit}\nwhen { "🙂" != "x" && context.dpth == 1 };`)).toMatchObject([
    { line: 3, column: 23, hint: expect.stringContaining('depth') },
  ]);
  expect(positionAt('a\nbc', 3)).toEqual({ line: 2, column: 2 });
});

it('accepts names in another script, or in two scripts', () => {
  expect(wrong('permit(principal in Group::"設計team", action, resource);')).toEqual([]);
});

it('reports every wrong policy of a text', () => {
  expect(
    wrong(`${permit} when { context.a == 1 };\n${permit};\n${permit} when { context.b == 1 };`).map(({ line }) => line),
  ).toEqual([1, 3]);
});

it('splits only at the ends of policies', () => {
  const scan = scanPolicies('permit(a) when { ";" == x }; // ; \n forbid(b);');
  expect(scan).toMatchObject({
    statements: [{ text: 'permit(a) when { ";" == x };', start: 0 }, { text: 'forbid(b);' }],
  });
});
