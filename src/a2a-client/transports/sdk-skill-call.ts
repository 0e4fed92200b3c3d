import { RialtoError } from '../../kernel/errors.js';
import {
  bridgeMetadata,
  decodeBridgeReply,
  skillPart,
  type BridgeReply,
} from '../../protocol/a2a/remote/bridge-call.js';
import { parseJson } from '../../protocol/jsonrpc.js';
import { Deadline } from '../../kernel/abort.js';
import type { BridgeSkillCall } from './bridge.transport.js';
import { withPushAddress } from './push-address.js';
import { isSettled, waitOrCancel, type RemoteTask, type Watch } from './remote-wait.js';
import type { SdkHop, SdkTransport } from './sdk.transport.js';

const pace = { firstMs: 250, mostMs: 2_000, random: Math.random };
const cancelDeadlineMs = 1_000;

type SdkSkillCall = Pick<BridgeSkillCall, 'skillId' | 'args' | 'takesText' | 'sessionId' | 'pushUrl' | 'blocking'> & {
  readonly messageId: string;
};

/**
 * Sends a skill call to an agent that offers no JSON-RPC: the bridge's message (one part, skill and session in
 * `metadata`) over the SDK. It waits and reports errors in the same way as the bridge's own wire form.
 */
export async function sendAsSkillCall(
  sdk: SdkTransport,
  hop: SdkHop,
  { skillId, args, takesText, sessionId, messageId, pushUrl, blocking }: SdkSkillCall,
  watch: Watch = waitOrCancel,
): Promise<BridgeReply> {
  const metadata = bridgeMetadata({ skillId, sessionId });
  const message = { messageId, role: 'ROLE_USER', parts: [skillPart({ args, takesText })], metadata } as const;
  const configuration = blocking === false ? { returnImmediately: true } : undefined;
  const params = { message: { ...message, parts: [...message.parts] }, ...(configuration && { configuration }) };
  const reply = asBridgeReply(await withPushAddress(pushUrl, (url) => sdk.send(hop, params, url)));
  if (reply.kind === 'message' || isSettled(reply)) return reply;
  const remote: RemoteTask = {
    get: async (id, deadline) => asBridgeReply(await sdk.getTask({ ...hop, deadline }, id)),
    cancel: (id) => sdk.cancelTask({ ...hop, deadline: new Deadline(cancelDeadlineMs), signals: [] }, id),
  };
  return watch(reply, remote, { deadline: hop.deadline, signals: hop.signals, pace });
}

/** Decodes the result in an envelope, so that the rules of RE-21…RE-24 exist only once. */
function asBridgeReply(result: unknown): BridgeReply {
  if (result === undefined) throw new RialtoError('remote_invalid_response');
  return decodeBridgeReply(parseJson(JSON.stringify({ jsonrpc: '2.0', id: 0, result })), { status: 200, requestId: 0 });
}
