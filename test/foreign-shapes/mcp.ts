import type { Shape } from './shape.js';

const tool = (more: object = {}) => ({ name: 'n', inputSchema: { type: 'object' }, ...more });
const schema = (inputSchema: unknown) => tool({ inputSchema });
const words = { type: 'text', text: 'a' };

/** Items of `tools/list`. */
export const tools: readonly Shape[] = [
  ['MCP 2025-11-25, tools', tool({ title: 'T', annotations: { readOnlyHint: true } }), { name: 'n', title: 'T' }],
  ['MCP 2025-06-18, outputSchema', tool({ outputSchema: { type: 'object' } }), { outputSchema: { type: 'object' } }],
  ['MCP 2025-11-25, icons', tool({ icons: [{ src: 'data:,' }] }), { icons: [{ src: 'data:,' }] }],
  [
    'MCP 2025-11-25, taskSupport',
    tool({ execution: { taskSupport: 'optional' } }),
    { execution: { taskSupport: 'optional' } },
  ],
  [
    'zod-to-json-schema, $schema of draft 7',
    schema({ type: 'object', $schema: 'http://json-schema.org/draft-07/schema#' }),
    { inputSchema: { $schema: 'http://json-schema.org/draft-07/schema#' } },
  ],
  [
    'FastMCP, title and $defs',
    schema({ type: 'object', title: 'nArguments', $defs: { A: { type: 'string' } } }),
    { inputSchema: { title: 'nArguments' } },
  ],
  [
    'PHP, an empty list for no properties',
    schema({ type: 'object', properties: [] }),
    { inputSchema: { properties: {} } },
  ],
  ['Go, null for nothing required', schema({ type: 'object', required: null }), { inputSchema: { type: 'object' } }],
  ['Go, null for no properties', schema({ type: 'object', properties: null }), { inputSchema: { type: 'object' } }],
  ['a schema that is empty', schema({}), { inputSchema: { type: 'object' } }],
  ['a union without a type', schema({ anyOf: [{ type: 'object' }] }), { inputSchema: { type: 'object', anyOf: [{}] } }],
  [
    'a property that takes all',
    schema({ type: 'object', properties: { a: true } }),
    { inputSchema: { properties: { a: {} } } },
  ],
  [
    'Java, unset members as null',
    tool({ title: null, description: null, annotations: null, outputSchema: null }),
    { name: 'n' },
  ],
  ['a member of its own', tool({ 'x-own': 1 }), { 'x-own': 1 }],
  ['a hint that is a text', tool({ annotations: { readOnlyHint: 'yes' } }), { name: 'n' }],
  ['arguments that are a list', schema({ type: 'array' }), /inputSchema/],
  ['properties that are a text', schema({ type: 'object', properties: 'a' }), /inputSchema/],
  ['no schema', { name: 'n' }, /inputSchema/],
];

/** Results of `tools/call`. */
export const results: readonly Shape[] = [
  ['MCP 2025-11-25, text', { content: [words] }, { content: [words] }],
  ['MCP 2025-06-18, structuredContent', { content: [], structuredContent: { a: 1 } }, { structuredContent: { a: 1 } }],
  ['MCP 2025-11-25, isError', { content: [words], isError: true }, { isError: true }],
  [
    'MCP 2025-11-25, image',
    { content: [{ type: 'image', data: 'aGk=', mimeType: 'image/png' }] },
    { content: [{ type: 'image' }] },
  ],
  [
    'MCP 2025-11-25, resource link',
    { content: [{ type: 'resource_link', uri: 'a://b', name: 'b' }] },
    { content: [{ uri: 'a://b' }] },
  ],
  ['content left out', { structuredContent: { a: 1 } }, { content: [], structuredContent: { a: 1 } }],
  ['content of null', { content: null }, { content: [] }],
  ['MCP 2026-07-28, members of each result', { resultType: 'complete', ttlMs: 0, content: [] }, { content: [] }],
  ['MCP 2025-11-25, _meta', { content: [], _meta: { 'a.example/b': 1 } }, { _meta: { 'a.example/b': 1 } }],
  ['a content of a later type', { content: [{ type: 'video', uri: 'a://b' }] }, { content: [{ type: 'video' }] }],
  ['content that is a text', { content: 'a' }, /"content" is not a list/],
  ['content that is an object', { content: words }, /"content" is not a list/],
];
