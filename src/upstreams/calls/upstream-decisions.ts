import { Injectable } from '@nestjs/common';
import type { CallContext } from '../../kernel/call-context.js';
import { RialtoError } from '../../kernel/errors.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Peer } from '../../kernel/peer.js';
import { VerbBus, type VerbCall } from '../../kernel/verb-bus.js';
import { changedToolsWait } from '../../policy/policy.types.js';
import { questionsOf } from '../client-requests/client-requests.js';
import type { UpstreamTool } from '../registered-server.types.js';
import { messageAct, toolAct, type CallTarget } from './upstream-acts.js';

/**
 * Limits of one call: how many requests its server may send to the caller, and how many characters of notifications it
 * may send. Notifications beyond the limit are dropped.
 */
const maxQuestions = 100;
const maxCharacters = 10_485_760;

/** The caller that a server asks, and the act that the server works on, unless that act is over. */
export type Asked = Pick<VerbCall, 'ctx' | 'within'>;

/** Decides, during a call, whether it may go on and whether its server may ask its caller. */
@Injectable()
export class UpstreamDecisions {
  constructor(private readonly verbs: VerbBus) {}

  /**
   * Returns whether the caller of a running call may still make it; neither audited nor announced. A changed tool does
   * not end the call, because the call was made with the approved definition.
   */
  async mayStillCall(ctx: CallContext, target: CallTarget, args: JsonObject): Promise<boolean> {
    const { allowed, needs, policies } = await this.verbs.decide(toolAct(ctx, target, args));
    return allowed || needs !== undefined || policies.includes(changedToolsWait);
  }

  /** Throws `tool_changed` when the call is no longer allowed as it was decided. */
  async requireStillAllowed(decided: VerbCall): Promise<void> {
    if (!(await this.verbs.permits(decided))) throw toolChanged({ verb: decided.verb });
  }

  /**
   * Wraps a peer so that each request of the server to its caller is authorized and audited. An approval of the act
   * that the server works on also covers its questions.
   */
  decidedPeer(asked: Asked, serverId: string, peer: Peer | undefined): Peer | undefined {
    if (!peer) return undefined;
    const budget = { questions: maxQuestions, characters: maxCharacters };
    const ask: Peer['ask'] = (method, params, signal) => {
      if (--budget.questions < 0)
        return Promise.reject(
          new RialtoError('rate_limited', {
            message: `the MCP server may ask its caller at most ${maxQuestions} times in one call`,
          }),
        );
      return this.verbs.around(questionAct(asked, serverId, method), () => peer.ask(method, params, signal, serverId));
    };
    const tell: Peer['tell'] = (method, params) => {
      budget.characters -= JSON.stringify(params).length;
      if (budget.characters >= 0) peer.tell(method, params, serverId);
    };
    return { ...peer, ask, tell };
  }

  /** Authorizes and audits each method among the questions in a result or a task, as `decidedPeer` does. */
  async decideQuestions(asked: Asked, serverId: string, result: JsonObject): Promise<void> {
    for (const method of new Set(questionsOf(result).map(([, question]) => question.method)))
      await this.verbs.around(questionAct(asked, serverId, method), () => Promise.resolve());
  }
}

function questionAct({ ctx, within }: Asked, serverId: string, method: string): VerbCall {
  return { ...messageAct(ctx, serverId, method), within };
}

/** Converts `denied` into `tool_changed` when only the changed definition of the tool prevents the call. */
export function asToolChanged(thrown: unknown, target: UpstreamTool | undefined): unknown {
  if (!(thrown instanceof RialtoError) || thrown.code !== 'denied') return thrown;
  if (!(thrown.data?.policies as string[] | undefined)?.includes(changedToolsWait)) return thrown;
  return toolChanged({ ...thrown.data, ...target?.quarantine }, thrown);
}

function toolChanged(data: JsonObject, cause?: unknown): RialtoError {
  return new RialtoError('tool_changed', {
    message: 'the MCP server changed the definition of this tool, which waits for approval',
    hint:
      'GET /api/mcp/tools?quarantined=true shows it; an admin approves it with ' +
      'POST /api/mcp/servers/{id}/approve, and for one user with POST …/{id}/credentials/{credentialId}/approve',
    data,
    cause,
  });
}
