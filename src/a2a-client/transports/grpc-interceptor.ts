import { fromGrpcError, GRPC_STATUS_DETAILS_BIN } from '@a2a-js/sdk/errors/grpc';
import { InterceptingCall, Metadata, status as codes, type Interceptor, type StatusObject } from '@grpc/grpc-js';
import { carryDecoded } from './carried.js';

/** Prefix of the status details of a call with an invalid answer. */
export const refusedAnswer = 'rialto: remote_invalid_response ';

/**
 * Checks the answer of an agent before the SDK reads it. The SDK reads some of it in a callback of grpc-js: an error
 * thrown there cannot be caught, and it ends the process.
 */
export function guarding(version: string): Interceptor {
  return (options, next) => {
    const isSend = options.method_definition.path.endsWith('/SendMessage');
    let flaw: string | undefined;
    const flawIn = (message: unknown): string | undefined => {
      if (isSend && !hasResult(message)) return 'neither a task nor a message';
      try {
        if (version === '0.3') carryDecoded(message);
        return undefined;
      } catch {
        return 'it cannot be read';
      }
    };
    return new InterceptingCall(next(options), {
      start: (metadata, _listener, begin) =>
        begin(metadata, {
          onReceiveMessage: (message: unknown, pass) => {
            if (message !== null) flaw ??= flawIn(message);
            pass(message);
          },
          onReceiveStatus: (status, pass) =>
            pass(
              flaw === undefined || status.code !== codes.OK
                ? readable(status)
                : { code: codes.INTERNAL, details: `${refusedAnswer}${flaw}`, metadata: new Metadata() },
            ),
        }),
    });
  };
}

function hasResult(message: unknown): boolean {
  const { $case } = (message as { payload?: { $case?: string } }).payload ?? {};
  return $case === 'task' || $case === 'message' || $case === 'msg';
}

/** Returns the status without details that the SDK cannot read. */
function readable(status: StatusObject): StatusObject {
  try {
    fromGrpcError(Object.assign(new Error(), status));
  } catch {
    status.metadata.remove(GRPC_STATUS_DETAILS_BIN);
  }
  return status;
}
