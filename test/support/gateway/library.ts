import { Refusal, TestUpstream, type UpstreamKind } from '../stubs/upstream.js';

/** Starts an upstream MCP server with one resource for each of `files`, a resource template and a prompt. */
export async function library(kind: UpstreamKind, root: string, files: string[]): Promise<TestUpstream> {
  const one = await TestUpstream.start(kind);
  const resources = files.map((name) => ({ uri: `${root}/${name}`, name, mimeType: 'text/plain', annotations: {} }));
  Object.assign(one.capabilities, {
    resources: { listChanged: true },
    prompts: { listChanged: true },
    completions: {},
  });
  one.methods.set('resources/list', () => ({ resources }));
  one.methods.set('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: `${root}/by-id/{id}`, name: 'by id' }],
  }));
  one.methods.set('resources/read', ({ uri }) => {
    if (uri.endsWith('/nowhere')) throw new Refusal(-32602, 'nowhere to be found', { uri });
    if (uri.endsWith('.bin')) return { contents: [{ uri, blob: 'AAEC', mimeType: 'application/octet-stream' }] };
    return { contents: [{ uri, text: `${root} says ${uri}`, _meta: { 'com.example/kept': 1 } }] };
  });
  one.methods.set('prompts/list', () => ({
    prompts: [{ name: 'greet', arguments: [{ name: 'who', required: true }] }],
  }));
  one.methods.set('prompts/get', ({ name, arguments: args }) => ({
    description: name,
    messages: [{ role: 'user', content: { type: 'text', text: `hello ${args?.who} from ${root}` } }],
  }));
  one.methods.set('completion/complete', ({ ref, argument, context }) => ({
    completion: { values: [ref.name ?? ref.uri, argument.value, JSON.stringify(context ?? null)], hasMore: false },
  }));
  return one;
}
