import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { questionTypes, type A2eMessage } from '../../protocol/a2e/messages.js';

/** By which an MCP server's client refuses (AE-64). */
const refusedCode = -32_000;

type Question = keyof typeof questionTypes;

interface Waiting {
  readonly method: Question;
  readonly settle: (answer: A2eMessage) => void;
  readonly giveUp: () => void;
}

/** What MCP servers want to know of one agent: sent on its socket, and waited for. */
export class AgentQuestions {
  private readonly waiting = new Map<string, Waiting>();

  /** @param send sends a message of a type and gives its id. @param withdraw says that nobody waits for an answer any more. */
  constructor(
    private readonly send: (type: string, payload: JsonObject) => string,
    private readonly withdraw: (id: string) => void,
  ) {}

  /** Throws `remote_error` for a refusal, `remote_invalid_response` for what is no answer, `canceled` when nobody waits any more. */
  ask(method: string, params: JsonObject, signal?: AbortSignal, server?: string): Promise<JsonObject> {
    if (!isQuestion(method)) return Promise.reject(new RialtoError('unsupported_operation'));
    if (signal?.aborted) return Promise.reject(new RialtoError('canceled'));
    return new Promise((resolve, reject) => {
      const id = this.send(questionTypes[method], { server_id: server ?? null, params });
      const end = (): void => {
        this.waiting.delete(id);
        signal?.removeEventListener('abort', giveUp);
      };
      const giveUp = (): void => {
        end();
        this.withdraw(id);
        reject(new RialtoError('canceled', { message: 'nobody waits for the answer any more' }));
      };
      const settle = (answer: A2eMessage): void => {
        end();
        try {
          resolve(answerOf(method, answer));
        } catch (refusal) {
          reject(RialtoError.from(refusal));
        }
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      this.waiting.set(id, { method, settle, giveUp });
    });
  }

  /** False for an answer to what nobody asked. */
  answered(answer: A2eMessage): boolean {
    const waiting = this.waiting.get(answer.reqId ?? '');
    if (!waiting || !answer.type.startsWith(questionTypes[waiting.method].replace(/req$/, ''))) return false;
    waiting.settle(answer);
    return true;
  }

  /** The agent has left. */
  close(): void {
    for (const { giveUp } of [...this.waiting.values()]) giveUp();
  }
}

function isQuestion(method: string): method is Question {
  return Object.hasOwn(questionTypes, method);
}

/** What MCP wants to have: the agent's `result`, or the members of one at the top of its answer. */
function answerOf(method: Question, { ok, error, payload }: A2eMessage): JsonObject {
  if (!ok) {
    const message = typeof error.message === 'string' ? error.message : 'the agent refused';
    const data = { reason: 'mcp_sampling_refused' };
    throw new RialtoError('remote_error', { message, data: { relayed: { code: refusedCode, message, data } } });
  }
  const result = isJsonObject(payload.result) ? payload.result : payload;
  const isOne = method === 'roots/list' ? Array.isArray(result.roots) : result.content !== undefined;
  if (isOne) return result;
  throw new RialtoError('remote_invalid_response', { message: 'the agent answered something else' });
}
