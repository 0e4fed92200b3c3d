import { randomUUID } from 'node:crypto';
import { json } from '../lib/processes.mjs';

/**
 * The paths of the ledger. `prepare` makes what a path needs and returns its operation: a function that sends one
 * request, checks the answer, and returns when all its work is done.
 */
export const paths = {
  send: ({ send }) => send({}, isCompleted),
  stream: ({ send }) => send({}, isCompleted, 'SendStreamingMessage'),
  async: ({ send, ended }) => {
    const start = send({ returnImmediately: true }, isStarted);
    return async () => ended(idOf(await start()));
  },
  '20 async at once': ({ send, ended }) => {
    const start = send({ returnImmediately: true }, isStarted);
    return async () => {
      const answers = await Promise.all(Array.from({ length: 20 }, start));
      for (const answer of answers) await ended(idOf(answer));
    };
  },
  get: async ({ send, rpc }) => {
    const id = idOf(await send({}, isCompleted)());
    return () => rpc('GetTask', { id }, isCompleted);
  },
  bridge: async ({ url, register, post }) => {
    await register();
    let n = 0;
    return () =>
      post(`${url}/mcp`, { method: 'tools/call', params: { name: 'a2a_bench_echo', arguments: { n: ++n } } }, (text) =>
        text.includes('structuredContent'),
      );
  },
  dispatch: async ({ url, token, register }) => {
    await register();
    return () =>
      json(`${url}/api/a2a/dispatch`, { token, body: { workType: 'echo', description: 'Repeat the number.' } });
  },
  report: async (gateway) => {
    const { submit, report } = await openMailbox(gateway);
    await submit();
    const parts = [{ text: gateway.text(90) }];
    let n = 0;
    return () => report({ type: 'artifact', artifact: { artifactId: 'a', parts }, append: n++ > 0 });
  },
  turn: async (gateway) => {
    const { submit, report } = await openMailbox(gateway);
    const { id: taskId, contextId } = await submit();
    const ask = () => report({ type: 'ask', text: gateway.text(90) });
    await ask();
    return async () => {
      await submit({ taskId, contextId });
      await ask();
    };
  },
};

/**
 * Publishes a mailbox agent. `submit` sends it a message, and leases the task for its worker; `report` reports for the
 * leased task.
 */
async function openMailbox({ url, token, text }) {
  const name = `box-${randomUUID().slice(0, 8)}`;
  const published = { name, description: 'x', executor: { kind: 'mailbox' }, a2a_enabled: true };
  const { secret } = await json(`${url}/api/a2a/published`, { token, body: published });
  let leased;
  const submit = async (task = {}) => {
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: text(90) }], ...task };
    const params = { message, configuration: { returnImmediately: true, historyLength: 1 } };
    const body = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params };
    const { result } = await json(`${url}/a2a/agents/${name}`, { token, body });
    leased = await json(`${url}/api/mailbox/${name}/lease?waitMs=30000&historyLength=1`, { token: secret, body: {} });
    return result.task;
  };
  const report = (event) =>
    json(`${url}/api/executions/${leased.task.id}/events`, {
      token: leased.token,
      body: { id: randomUUID(), leaseEpoch: leased.leaseEpoch, ...event },
    });
  return { submit, report };
}

const isStarted = (text) => /TASK_STATE_(SUBMITTED|WORKING|COMPLETED)/.test(text);
const isCompleted = (text) => text.includes('TASK_STATE_COMPLETED');

function idOf(text) {
  const { result } = JSON.parse(text);
  return (result.task ?? result).id;
}

/** Publishes the echo agent at a gateway, and returns what the paths call. */
export async function openGateway({ url, token }, { agentUrl, text, ended }) {
  const body = { name: 'echo', description: 'Repeats the message.', executor: { kind: 'echo' }, a2a_enabled: true };
  await json(`${url}/api/a2a/published`, { token, body });
  let id = 0;
  const post = async (at, request, expect) => {
    const response = await fetch(at, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        authorization: `Bearer ${token}`,
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++id, ...request }),
    });
    const answer = await response.text();
    if (response.status !== 200 || !expect(answer))
      throw new Error(`${at} answered ${response.status} ${answer.slice(0, 500)}`);
    return answer;
  };
  const rpc = (method, params, expect) => post(`${url}/a2a/agents/echo`, { method, params }, expect);
  const send =
    (configuration, expect, method = 'SendMessage') =>
    () => {
      const message = { messageId: `m${++id}`, role: 'ROLE_USER', parts: [{ text: text(500) }] };
      return rpc(method, { message, configuration }, expect);
    };
  let registered;
  const register = () => (registered ??= json(`${url}/api/a2a/agents`, { token, body: { url: agentUrl } }));
  return { url, token, register, text, post, rpc, send, ended };
}
