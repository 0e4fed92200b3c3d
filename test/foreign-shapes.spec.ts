import { completed, faultOfEvent } from '../src/a2a-client/transports/reply-shape.js';
import { RialtoError } from '../src/kernel/errors.js';
import type { Json, JsonObject } from '../src/kernel/json.js';
import { decodeBridgeReply, toolOutput } from '../src/protocol/a2a/remote/bridge-call.js';
import { normaliseCard } from '../src/protocol/a2a/card/card.js';
import { dialects } from '../src/protocol/a2a/dialects.js';
import { parseJson, parseRequest, parseResponse } from '../src/protocol/jsonrpc.js';
import { mendItem } from '../src/protocol/mcp/list-items.js';
import { SseParser } from '../src/protocol/sse.js';
import { checkedResult } from '../src/upstreams/upstream-result.js';
import { answers, events } from './foreign-shapes/answers.js';
import { cards } from './foreign-shapes/cards.js';
import { calls, responses, streams } from './foreign-shapes/envelopes.js';
import { results, tools } from './foreign-shapes/mcp.js';
import { requests } from './foreign-shapes/requests.js';
import type { Shape } from './foreign-shapes/shape.js';

/*
 * Small values that peers send, each with the specification or the product that uses it. The gateway reads each as
 * expected, or refuses it with an error that says what is wrong.
 */

type Fault = { field: string; description: string };
const textOf = (faults: readonly Fault[]) =>
  faults.map(({ field, description }) => `${field}: ${description}`).join('; ');
const fail = (reason: string): never => {
  throw new Error(reason);
};

/** The readers, by the kind of value. A reader returns the value or throws. */
const readers: Record<string, { shapes: readonly Shape[]; read: (given: never) => unknown }> = {
  'an A2A card': {
    shapes: cards,
    read: (given: Json) => {
      const found = normaliseCard(given, { url: 'https://agent.example/.well-known/agent-card.json' });
      return found.ok ? found.card : fail(textOf(found.violations));
    },
  },
  'an A2A request': {
    shapes: requests,
    read: ({ method, params }: { method: string; params?: Json }) => {
      const found = dialects[method.includes('/') ? '0.3' : '1.0'].decode(method, params);
      return found.ok ? found.operation : fail(`${found.message}; ${textOf(found.violations ?? [])}`);
    },
  },
  'an A2A answer': {
    shapes: answers,
    read: (result: Json) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result });
      return toolOutput(decodeBridgeReply(parseJson(body), { status: 200, requestId: 1 }));
    },
  },
  'an A2A event': {
    shapes: events,
    read: (given: Json) => {
      const fault = faultOfEvent(given);
      return fault === undefined ? completed(structuredClone(given)) : fail(fault);
    },
  },
  'a JSON-RPC response': {
    shapes: responses,
    read: (given: Json) => {
      const found = parseResponse(given);
      return found.ok ? found : fail(found.reason);
    },
  },
  'a JSON-RPC request': {
    shapes: calls,
    read: (given: Json) => {
      const found = parseRequest(given);
      return found.ok ? found.request : fail(found.reason);
    },
  },
  'an event stream': { shapes: streams, read: (given: string) => [...new SseParser().push(Buffer.from(given))] },
  'an MCP tool': {
    shapes: tools,
    read: (given: JsonObject) => {
      const { item, problems } = mendItem('tools', given);
      return item ?? fail(problems.join('; '));
    },
  },
  'an MCP result': { shapes: results, read: (given: JsonObject) => checkedResult(given, 'tool') },
};

describe.each(Object.entries(readers))('%s', (_, { shapes, read }) => {
  it.each(shapes)('%s', async (_source, given, expected) => {
    const value = await outcome(() => read(given as never));
    if (expected instanceof RegExp) expect(value).toEqual({ refused: expect.stringMatching(expected) });
    else if (typeof expected === 'object' && expected !== null) expect(value).toMatchObject(expected);
    else expect(value).toBe(expected);
  });
});

it('the shapes are many, and each has a unique name', () => {
  const names = Object.entries(readers).flatMap(([kind, { shapes }]) => shapes.map(([source]) => `${kind}: ${source}`));
  expect(names.length).toBeGreaterThanOrEqual(150);
  expect(new Set(names).size).toBe(names.length);
});

async function outcome(read: () => unknown): Promise<unknown> {
  try {
    return await read();
  } catch (error) {
    return { refused: error instanceof RialtoError ? error.message : String(error) };
  }
}
