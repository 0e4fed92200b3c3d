/*
 * The MCP server that the public conformance suites require, in both eras, made with the official SDK. So a suite that
 * calls it through the gateway tests the gateway. `node fixture.mjs [port] [auto|legacy|modern]` serves it on
 * loopback and prints its URL.
 */
import { createHmac, randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, isLegacyRequest, ProtocolError, Server } from '@modelcontextprotocol/server';

const png = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const wav = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';
const key = randomBytes(32);

const text = (said) => ({ content: [{ type: 'text', text: said }] });
const image = { type: 'image', data: png, mimeType: 'image/png' };
const embedded = (uri, mimeType, more) => ({ type: 'resource', resource: { uri, mimeType, ...more } });
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const object = (properties = {}, required = []) => ({ type: 'object', properties, required });
const string = { type: 'string' };

const sign = (state) => `${state}.${createHmac('sha256', key).update(state).digest('hex')}`;
const opened = (state) => {
  const [plain] = state.split('.');
  if (sign(plain) !== state) throw new ProtocolError(-32602, 'Invalid or expired requestState');
  return plain;
};

const elicit = (message, properties, required = Object.keys(properties)) => ({
  method: 'elicitation/create',
  params: { mode: 'form', message, requestedSchema: object(properties, required) },
});
const sample = (said, maxTokens) => ({
  method: 'sampling/createMessage',
  params: { messages: [{ role: 'user', content: { type: 'text', text: said } }], maxTokens },
});
const roots = { method: 'roots/list', params: {} };
const isAccepted = (answer) => answer?.action === 'accept' && typeof answer.content === 'object';

/** Asks its caller for something in the way of the 2025 era. */
const asked = async ({ mcpReq }, { method, params }) => {
  if (method === 'sampling/createMessage') return mcpReq.requestSampling(params);
  return mcpReq.elicitInput(params);
};
/** Takes part in rounds until `questions` are answered. */
const rounds =
  (questions, done, state) =>
  (_args, { mcpReq }) => {
    const answers = mcpReq.inputResponses ?? {};
    const given = mcpReq.requestState();
    if (given !== undefined && state !== undefined && opened(given) !== state)
      throw new ProtocolError(-32602, 'Invalid or expired requestState');
    const isComplete = Object.entries(questions).every(([name, { method }]) =>
      method === 'elicitation/create' ? isAccepted(answers[name]) : answers[name] !== undefined,
    );
    if (isComplete && (state === undefined || given !== undefined)) return done(answers);
    return inputRequired({ inputRequests: questions, ...(state !== undefined && { requestState: sign(state) }) });
  };

const name = elicit('What is your name?', { name: string });
const enums = {
  untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
  titledSingle: {
    type: 'string',
    oneOf: ['First', 'Second', 'Third'].map((title, index) => ({
      const: `value${index + 1}`,
      title: `${title} Option`,
    })),
  },
  legacyEnum: {
    type: 'string',
    enum: ['opt1', 'opt2', 'opt3'],
    enumNames: ['Option One', 'Option Two', 'Option Three'],
  },
  untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
  titledMulti: {
    type: 'array',
    items: {
      anyOf: ['First', 'Second', 'Third'].map((title, index) => ({
        const: `value${index + 1}`,
        title: `${title} Choice`,
      })),
    },
  },
};
const defaults = {
  name: { type: 'string', default: 'John Doe' },
  age: { type: 'integer', default: 30 },
  score: { type: 'number', default: 95.5 },
  status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
  verified: { type: 'boolean', default: true },
};

const elicited = (question) => async (_args, ctx) => {
  const { action, content } = await asked(ctx, question);
  return text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
};
const level = (message, at = 'info') => ({
  method: 'notifications/message',
  params: { level: at, logger: 'fixture', data: message },
});

const tools = {
  test_simple_text: [() => text('This is a simple text response for testing.')],
  test_image_content: [() => ({ content: [image] })],
  test_audio_content: [() => ({ content: [{ type: 'audio', data: wav, mimeType: 'audio/wav' }] })],
  test_embedded_resource: [
    () => ({
      content: [embedded('test://embedded-resource', 'text/plain', { text: 'This is an embedded resource content.' })],
    }),
  ],
  test_multiple_content_types: [
    () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        image,
        embedded('test://mixed-content-resource', 'application/json', { text: '{"test":"data","value":123}' }),
      ],
    }),
  ],
  test_tool_with_logging: [
    async (_args, { mcpReq }) => {
      for (const said of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await mcpReq.notify(level(said));
        await pause(50);
      }
      return text('Tool with logging executed successfully');
    },
  ],
  test_error_handling: [() => ({ ...text('This tool intentionally returns an error for testing'), isError: true })],
  test_tool_with_progress: [
    async (_args, { mcpReq }) => {
      const progressToken = mcpReq._meta?.progressToken;
      for (const progress of [0, 50, 100]) {
        if (progressToken !== undefined)
          await mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
        await pause(50);
      }
      return text('Progress test completed');
    },
  ],
  test_sampling: [
    async ({ prompt }, ctx) => {
      const { content } = await asked(ctx, sample(prompt, 100));
      return text(`LLM response: ${[content].flat()[0]?.text ?? ''}`);
    },
    object({ prompt: string }, ['prompt']),
  ],
  test_elicitation: [
    async ({ message }, ctx) => {
      const { action, content } = await asked(ctx, elicit(message, { username: string, email: string }));
      return text(`User response: action=${action}, content=${JSON.stringify(content ?? {})}`);
    },
    object({ message: string }, ['message']),
  ],
  test_elicitation_sep1034_defaults: [elicited(elicit('Please review the defaults', defaults, []))],
  test_elicitation_sep1330_enums: [elicited(elicit('Please choose', enums, []))],
  json_schema_2020_12_tool: [
    (args) => text(`JSON Schema 2020-12 tool called with: ${JSON.stringify(args)}`),
    {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: { address: { $anchor: 'addressDef', type: 'object', properties: { street: string, city: string } } },
      properties: {
        name: string,
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: string,
        email: string,
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  ],
  test_reconnection: [
    async (_args, { http }) => {
      http?.closeSSE?.();
      await pause(100);
      return text('Reconnection test completed');
    },
  ],
  test_missing_capability: [
    (_args, { mcpReq }) => {
      const declared = mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
      if (declared.sampling) return text('The capability is there.');
      throw new ProtocolError(-32021, 'Missing required client capability', { requiredCapabilities: { sampling: {} } });
    },
  ],
  test_streaming_elicitation: [rounds({ user_name: name }, () => text('streamed'))],
  test_logging_tool: [
    async (_args, { mcpReq }) => {
      const wanted = mcpReq.envelope?.['io.modelcontextprotocol/logLevel'];
      if (wanted !== undefined) await mcpReq.notify(level('A message of the tool', wanted));
      return text('logged');
    },
  ],
  test_trigger_tool_change: [(_args, _ctx, notify) => (notify.toolsChanged(), text('tools changed'))],
  test_trigger_prompt_change: [(_args, _ctx, notify) => (notify.promptsChanged(), text('prompts changed'))],
  test_input_required_result_elicitation: [
    rounds({ user_name: name }, ({ user_name: { content } }) => text(`Hello, ${content.name}!`)),
  ],
  test_input_required_result_sampling: [
    rounds({ capital_question: sample('What is the capital of France?', 100) }, ({ capital_question: { content } }) =>
      text([content].flat()[0]?.text ?? ''),
    ),
  ],
  test_input_required_result_list_roots: [
    rounds({ client_roots: roots }, ({ client_roots }) => text(`Roots: ${JSON.stringify(client_roots.roots)}`)),
  ],
  test_input_required_result_request_state: [
    rounds({ confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) }, () => text('state-ok'), 'confirm'),
  ],
  test_input_required_result_tampered_state: [
    rounds({ confirm: elicit('Please confirm', { ok: { type: 'boolean' } }) }, () => text('state-ok'), 'tamper'),
  ],
  test_input_required_result_multiple_inputs: [
    rounds(
      { user_name: name, greeting: sample('Generate a greeting', 50), client_roots: roots },
      () => text('all answered'),
      'multiple',
    ),
  ],
  test_input_required_result_multi_round: [
    (_args, ctx) => {
      const state = ctx.mcpReq.requestState();
      const step = state === undefined ? 'step1' : opened(state);
      const answers = ctx.mcpReq.inputResponses ?? {};
      const question = {
        step1: elicit('Step 1: What is your name?', { name: string }),
        step2: elicit('Step 2: What is your favorite color?', { color: string }),
      };
      if (state === undefined || !isAccepted(answers[step]))
        return inputRequired({ inputRequests: { [step]: question[step] }, requestState: sign(step) });
      if (step === 'step1')
        return inputRequired({ inputRequests: { step2: question.step2 }, requestState: sign('step2') });
      return text('two rounds');
    },
  ],
  test_input_required_result_capabilities: [
    (_args, ctx) => {
      const declared = ctx.mcpReq.envelope?.['io.modelcontextprotocol/clientCapabilities'] ?? {};
      const questions = {
        ...(declared.elicitation && { user_name: name }),
        ...(declared.sampling && { greeting: sample('Generate a greeting', 50) }),
        ...(declared.roots && { client_roots: roots }),
      };
      if (Object.keys(questions).length === 0) return text('nothing can be asked');
      return rounds(questions, () => text('answered'))({}, ctx);
    },
  ],
};

const resources = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: png },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watched' },
  'test://embedded-resource': { mimeType: 'text/plain', text: 'This is an embedded resource content.' },
};
const said = (role, content) => ({ role, content });
const user = (content) => ({ messages: [said('user', content)] });
const prompts = {
  test_simple_prompt: [[], () => user({ type: 'text', text: 'This is a simple prompt for testing.' })],
  test_prompt_with_arguments: [
    ['arg1', 'arg2'],
    ({ arg1, arg2 }) => user({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` }),
  ],
  test_prompt_with_embedded_resource: [
    ['resourceUri'],
    ({ resourceUri }) => ({
      messages: [
        said('user', embedded(resourceUri, 'text/plain', { text: 'Embedded resource content for testing.' })),
        said('user', { type: 'text', text: 'Please process the embedded resource above.' }),
      ],
    }),
  ],
  test_prompt_with_image: [
    [],
    () => ({
      messages: [said('user', image), said('user', { type: 'text', text: 'Please analyze the image above.' })],
    }),
  ],
  test_input_required_result_prompt: [
    [],
    rounds({ user_context: elicit('What context should the prompt use?', { context: string }) }, ({ user_context }) =>
      user({ type: 'text', text: `In the context of ${user_context.content.context}` }),
    ),
  ],
};

function serverFor(notify) {
  const changing = { listChanged: true };
  const capabilities = {
    tools: changing,
    resources: { ...changing, subscribe: true },
    prompts: changing,
    completions: {},
    logging: {},
  };
  const server = new Server({ name: 'conformance-fixture', version: '1.0.0' }, { capabilities });
  server.setRequestHandler('tools/list', () => ({
    tools: Object.entries(tools).map(([tool, [, inputSchema = object()]]) => ({
      name: tool,
      description: `Tool ${tool}`,
      inputSchema,
    })),
  }));
  server.setRequestHandler('tools/call', async ({ params }, ctx) => {
    const [answer] = tools[params.name] ?? [];
    if (!answer) throw new ProtocolError(-32602, `Unknown tool: ${params.name}`);
    return answer(params.arguments ?? {}, ctx, notify);
  });
  server.setRequestHandler('resources/list', () => ({
    resources: Object.entries(resources).map(([uri, { mimeType }]) => ({ uri, name: uri, description: uri, mimeType })),
  }));
  server.setRequestHandler('resources/templates/list', () => ({
    resourceTemplates: [{ uriTemplate: 'test://template/{id}/data', name: 'template', mimeType: 'application/json' }],
  }));
  server.setRequestHandler('resources/read', ({ params: { uri } }) => {
    const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
    if (id)
      return {
        contents: [
          {
            uri,
            mimeType: 'application/json',
            text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
          },
        ],
      };
    if (!resources[uri]) throw new ProtocolError(-32602, 'Resource not found', { uri });
    return { contents: [{ uri, ...resources[uri] }] };
  });
  server.setRequestHandler('resources/subscribe', () => ({}));
  server.setRequestHandler('resources/unsubscribe', () => ({}));
  server.setRequestHandler('prompts/list', () => ({
    prompts: Object.entries(prompts).map(([prompt, [args]]) => ({
      name: prompt,
      description: `Prompt ${prompt}`,
      arguments: args.map((arg) => ({ name: arg, required: true })),
    })),
  }));
  server.setRequestHandler('prompts/get', ({ params }, ctx) => {
    const [, get] = prompts[params.name] ?? [];
    if (!get) throw new ProtocolError(-32602, `Unknown prompt: ${params.name}`);
    return get(params.arguments ?? {}, ctx);
  });
  server.setRequestHandler('completion/complete', ({ params: { argument } }) => ({
    completion: {
      values: ['paris', 'park', 'party'].filter((value) => value.startsWith(argument.value)),
      total: 3,
      hasMore: false,
    },
  }));
  return server;
}

/** Serves the fixture on a port of loopback. */
export async function startFixture(port = 0, eras = 'auto') {
  const sessions = new Map();
  const modern = createMcpHandler(() => serverFor(modern.notify), { legacy: 'reject' });
  const serveModern = toNodeHandler(modern);
  const serveLegacy = async (request, response, body) => {
    const id = request.headers['mcp-session-id'];
    if (id !== undefined) {
      const known = sessions.get(id);
      return known ? known.handleRequest(request, response, body) : response.writeHead(404).end();
    }
    const transport = new NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: (session) => void sessions.set(session, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    const server = serverFor({
      toolsChanged: () => void server.sendToolListChanged(),
      promptsChanged: () => void server.sendPromptListChanged(),
    });
    await server.connect(transport);
    return transport.handleRequest(request, response, body);
  };
  const isLegacy = async (request, body) => {
    if (eras !== 'auto') return eras === 'legacy';
    return request.method !== 'POST' || isLegacyRequest(await toWebRequest(request, body));
  };
  const http = createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', async () => {
      const raw = Buffer.concat(chunks).toString('utf8');
      const body = raw === '' ? undefined : JSON.parse(raw);
      await ((await isLegacy(request, body)) ? serveLegacy : serveModern)(request, response, body);
    });
  });
  await new Promise((resolve) => http.listen(port, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${http.address().port}/mcp`;
  return { url, close: () => new Promise((resolve) => (http.closeAllConnections(), http.close(resolve))) };
}

if (import.meta.url === `file://${process.argv[1]}`) {
  const [port = '0', eras] = process.argv.slice(2);
  console.log((await startFixture(Number(port), eras)).url);
}
