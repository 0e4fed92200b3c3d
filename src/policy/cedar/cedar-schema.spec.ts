import { schemaToJson } from '@cedar-policy/cedar-wasm/nodejs';
import { actions } from '../../kernel/verbs.js';
import { cedarSchema, entityTypes, principalTypes } from './cedar-schema.js';

it('is a valid Cedar schema with exactly the actions and types of the vocabulary', () => {
  const answer = schemaToJson(cedarSchema);
  if (answer.type === 'failure') throw new Error(JSON.stringify(answer.errors));
  expect(answer.warnings).toEqual([]);
  expect(Object.keys(answer.json)).toEqual(['']);
  const { actions: declared, entityTypes: types } = answer.json['']!;
  expect(Object.keys(types).sort()).toEqual([...entityTypes].sort());
  expect(Object.keys(declared).sort()).toEqual(Object.keys(actions).sort());
  expect(Object.keys(declared)).toHaveLength(15);
  for (const [name, { appliesTo }] of Object.entries(declared)) {
    expect(appliesTo?.principalTypes).toEqual([...principalTypes]);
    expect(appliesTo?.resourceTypes).toEqual([actions[name as keyof typeof actions].resource]);
  }
});
