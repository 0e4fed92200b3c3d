import fc from 'fast-check';
import { policyTemplates, renderTemplate, type TemplateInput } from './templates.js';
import { parsePolicies, validatePolicyText } from './validate.js';

const plain = (input: TemplateInput): unknown =>
  input.choices?.[0] ?? { integer: 3, datetime: '2026-01-01T00:00:00+01:00', text: 'x', choice: '' }[input.type];
const plainInputs = (id: string): Record<string, unknown> => {
  const template = policyTemplates.find((candidate) => candidate.id === id)!;
  return Object.fromEntries(Object.entries(template.inputs).map(([name, input]) => [name, plain(input)]));
};
const shapeOf = (text: string): unknown => {
  const { policies, violations } = parsePolicies(text);
  expect(violations).toEqual([]);
  // The shape is everything except the texts that inputs can fill.
  return JSON.parse(JSON.stringify(policies.map(({ json }) => json)), (key, value: unknown) =>
    key === 'id' || (key === 'Value' && typeof value === 'string') ? '…' : value,
  );
};

describe.each(policyTemplates.map(({ id }) => id))('%s', (id) => {
  const { inputs } = policyTemplates.find((candidate) => candidate.id === id)!;

  it('renders a policy that can be stored', () => {
    const rendered = renderTemplate(id, plainInputs(id));
    expect(rendered.ok && validatePolicyText(id, rendered.value)).toEqual([]);
  });

  it('RE-76 names each missing input', () => {
    const rendered = renderTemplate(id, {});
    const missing = rendered.ok ? [] : rendered.violations;
    expect(missing).toEqual(Object.keys(inputs).map((field) => ({ field, description: 'required' })));
  });

  it('keeps the shape of the policy for any text', () => {
    const evil = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
      fc.constantFrom(
        '"',
        '\\',
        '\\"',
        '"); permit(principal, action, resource); //',
        '*',
        '\n',
        '\u202e',
        '?principal',
        '\\u{22}',
      ),
    );
    const shape = shapeOf((renderTemplate(id, plainInputs(id)) as { value: string }).value);
    const texts = Object.entries(inputs).filter(([, input]) => input.type === 'text');
    fc.assert(
      fc.property(fc.tuple(...texts.map(() => evil)), (values) => {
        const filled = Object.fromEntries(texts.map(([name], index) => [name, values[index]]));
        const rendered = renderTemplate(id, { ...plainInputs(id), ...filled });
        expect(rendered.ok && shapeOf(rendered.value)).toEqual(shape);
      }),
      { numRuns: 100 },
    );
  });
});

it('refuses inputs of a wrong type, and unknown inputs and templates', () => {
  const problems = (id: string, inputs: Record<string, unknown>): string[] => {
    const rendered = renderTemplate(id, inputs);
    return rendered.ok ? [] : rendered.violations.map(({ field }) => field);
  };
  expect(problems('require-trust-level', { trustLevel: 'best' })).toEqual(['trustLevel']);
  expect(problems('limit-delegation', { maxDepth: '3 };' })).toEqual(['maxDepth']);
  expect(problems('limit-delegation', { maxDepth: -1 })).toEqual(['maxDepth']);
  expect(problems('freeze-agent', { agent: 'a', from: '2026-01-01', until: 'x") };' })).toEqual(['from', 'until']);
  expect(problems('forbid-skill', { agent: 1, skill: '\ud800' })).toEqual(['agent', 'skill']);
  expect(problems('forbid-skill', { agent: 'a', skill: 'b', extra: 'c' })).toEqual(['extra']);
  expect(problems('permit-user', { user: 'x'.repeat(257), agent: 'a' })).toEqual(['user']);
  expect(problems('constructor', {})).toEqual(['template']);
});
