import { RialtoError } from '../../kernel/errors.js';
import { isJsonObject, type JsonObject } from '../../kernel/json.js';
import { questionTypes, type A2eMessage } from '../../protocol/a2e/messages.js';

/** JSON-RPC code that MCP clients use for a refusal (AE-64). */
const refusedCode = -32_000;

type Question = keyof typeof questionTypes;

interface Waiting {
  readonly method: Question;
  readonly settle: (answer: A2eMessage) => void;
  readonly giveUp: () => void;
}

/** Questions of MCP servers to one agent: sends them on its socket and waits for the answers. */
export class AgentQuestions {
  private readonly waiting = new Map<string, Waiting>();

  /**
   * Creates the questions of one socket.
   *
   * @param send sends a message of a type and returns its id.
   * @param withdraw tells the agent that the question is withdrawn.
   */
  constructor(
    private readonly send: (type: string, payload: JsonObject) => string,
    private readonly withdraw: (id: string) => void,
  ) {}

  /**
   * Sends a question and waits for its answer. Rejects with `remote_error` for a refusal, `remote_invalid_response`
   * for an invalid answer, and `canceled` when the signal aborts or the agent disconnects.
   */
  askAgent(method: string, params: JsonObject, signal?: AbortSignal, server?: string): Promise<JsonObject> {
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
        reject(new RialtoError('canceled', { message: 'the question was withdrawn before the agent answered' }));
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

  /** Takes an answer. False when it belongs to no open question. */
  takeAnswer(answer: A2eMessage): boolean {
    const waiting = this.waiting.get(answer.reqId ?? '');
    if (!waiting || !answer.type.startsWith(questionTypes[waiting.method].replace(/req$/, ''))) return false;
    waiting.settle(answer);
    return true;
  }

  /** Withdraws all open questions because the agent has disconnected. */
  withdrawAll(): void {
    for (const { giveUp } of [...this.waiting.values()]) giveUp();
  }
}

function isQuestion(method: string): method is Question {
  return Object.hasOwn(questionTypes, method);
}

/** Result for MCP: the `result` of the agent's answer, or the members at its top level. */
function answerOf(method: Question, { ok, error, payload }: A2eMessage): JsonObject {
  if (!ok) {
    const message = typeof error.message === 'string' ? error.message : 'the agent refused to answer';
    const data = { reason: 'mcp_sampling_refused' };
    throw new RialtoError('remote_error', { message, data: { relayed: { code: refusedCode, message, data } } });
  }
  const result = isJsonObject(payload.result) ? payload.result : payload;
  const isValid = method === 'roots/list' ? Array.isArray(result.roots) : result.content !== undefined;
  if (isValid) return result;
  throw new RialtoError('remote_invalid_response', {
    message: `the answer of the agent has no ${method === 'roots/list' ? 'list "roots"' : 'member "content"'}`,
  });
}
