import { RialtoError } from '../../kernel/errors.js';
import { jsonRpcCodes } from '../../protocol/jsonrpc.js';

/** PushNotificationNotSupportedError (A2A v1.0 section 5.4). */
const notSupported = -32_003;

/**
 * Sends with the URL that the agent may push to, and once more without it when the agent refuses: it may not be able
 * or willing to reach this gateway. A refusal of parameters has had no effect, so the second send is safe. Throws the
 * errors of `send`.
 */
export async function withPushAddress<Reply>(
  pushUrl: string | undefined,
  send: (pushUrl: string | undefined) => Promise<Reply>,
): Promise<Reply> {
  try {
    return await send(pushUrl);
  } catch (error) {
    if (pushUrl === undefined || !isPushRefusal(error)) throw error;
    return send(undefined);
  }
}

function isPushRefusal(error: unknown): boolean {
  const { code, data } = RialtoError.from(error);
  if (code !== 'remote_error' && code !== 'remote_transport') return false;
  return (
    data?.httpStatus === 400 || data?.remoteCode === notSupported || data?.remoteCode === jsonRpcCodes.invalidParams
  );
}
