import { encodeGrpcStatusDetails, fromGrpcError } from '@a2a-js/sdk/errors/grpc';
import { Metadata, status } from '@grpc/grpc-js';
import { asClientError } from '../../src/a2a-client/client/client-errors.js';
import { grpcMeaning } from '../../src/a2a-client/transports/grpc-error.js';
import { refused, restDetails, restFault } from '../../src/a2a-client/transports/wire-error.js';

const info = {
  '@type': 'type.googleapis.com/google.rpc.ErrorInfo',
  reason: 'APPROVAL_REQUIRED',
  domain: 'rialto',
  metadata: { approvalUrl: 'https://gateway.example/approvals/1' },
};

describe('the details of an error of a remote agent', () => {
  it('are given to the caller of the client, and not to that of the gateway', () => {
    const error = refused({ code: -32_000, message: 'a person must approve', data: [info, 'x'] });
    expect(asClientError(error).remoteDetails).toEqual([info]);
    expect(JSON.stringify(error.data)).not.toContain('approvals');
  });

  it.each([undefined, null, 'text', { reason: 'x' }, []])('are none when its data is %j', (data) => {
    expect(asClientError(refused({ message: 'no', data })).remoteDetails).toEqual([]);
  });

  it('are read from HTTP+JSON, also with a reason that A2A does not define', () => {
    expect(restDetails({ error: { code: 409, details: [info, 7] } })).toEqual([info]);
    const known = { ...info, reason: 'TASK_NOT_FOUND' };
    const status = { code: 404, message: 'gone', details: [known] };
    for (const body of [{ error: status }, status])
      expect(restFault(body)).toEqual({ code: -32_001, message: 'gone', data: [known] });
    for (const body of [undefined, null, [], { error: 'x' }, { error: { details: {} } }])
      expect(restDetails(body)).toEqual([]);
  });

  it('are read from the status of a gRPC call', () => {
    const metadata = new Metadata();
    const bytes = encodeGrpcStatusDetails(status.FAILED_PRECONDITION, 'ask', info.reason, info.metadata);
    metadata.set('grpc-status-details-bin', bytes);
    const failed = Object.assign(new Error('ask'), { code: status.FAILED_PRECONDITION, details: 'ask', metadata });
    expect(asClientError(grpcMeaning(fromGrpcError(failed, 'SendMessage'))).remoteDetails).toMatchObject([
      { reason: info.reason, metadata: info.metadata },
    ]);
  });
});
