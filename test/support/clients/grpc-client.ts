import * as sdk from '@a2a-js/sdk';
import { decodeErrorInfo, decodeStatus } from '@a2a-js/sdk/errors/grpc';
import { A2AService } from '@a2a-js/sdk/server/grpc';
import {
  Client,
  credentials,
  Metadata,
  status as Status,
  type CallOptions,
  type ClientReadableStream,
  type StatusObject,
} from '@grpc/grpc-js';
import type { TestGateway } from '../gateway/gateway.js';

/** The status of a refused call. */
export interface Refused {
  readonly code: number;
  readonly message: string;
  /** google.rpc.ErrorInfo, when the status has one. */
  readonly info?: { reason: string; domain: string; metadata: Record<string, string> };
  /** The type names of all details. */
  readonly types: string[];
  readonly raw: Buffer;
  readonly requestId?: string;
}

export interface CallMore {
  readonly metadata?: Record<string, string | string[]>;
  readonly token?: string | null;
  readonly options?: CallOptions;
}

class RefusedCall extends Error {
  constructor(readonly refused: Refused) {
    super(`${refused.code} ${refused.message}`);
  }
}

/** A plain client of the v1.0 service. It sends exactly what a test gives it. */
export class GrpcCaller {
  private readonly client: Client;

  constructor(
    private readonly gateway: TestGateway,
    port = gateway.gateway.grpcPort,
  ) {
    this.client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  }

  /** Returns the answer with its initial metadata. Throws `RefusedCall` when the gateway refuses the call. */
  async call(rpc: 'sendMessage' | 'getTask' | 'cancelTask' | 'listTasks', request: object, more: CallMore = {}) {
    const { path, requestSerialize, responseDeserialize } = A2AService[rpc];
    const message = {
      sendMessage: sdk.SendMessageRequest,
      getTask: sdk.GetTaskRequest,
      cancelTask: sdk.CancelTaskRequest,
      listTasks: sdk.ListTasksRequest,
    }[rpc].fromJSON(request);
    let initial = new Metadata();
    const answer = await new Promise<never>((resolve, reject) => {
      const call = this.client.makeUnaryRequest(
        path,
        requestSerialize as (value: unknown) => Buffer,
        responseDeserialize as (bytes: Buffer) => never,
        message,
        this.metadata(more),
        more.options ?? {},
        (error, value) => (error ? reject(new RefusedCall(refusalOf(error))) : resolve(value!)),
      );
      call.on('metadata', (metadata) => (initial = metadata));
    });
    return { answer: answer as unknown, headers: initial.getMap() };
  }

  refused(...args: Parameters<GrpcCaller['call']>): Promise<Refused> {
    return this.call(...args).then(
      () => Promise.reject(new Error('the call was not refused')),
      (error: RefusedCall) => error.refused,
    );
  }

  /** Makes one call with raw bytes as message. */
  raw(path: string, bytes: Buffer, more: CallMore = {}): Promise<Refused | Buffer> {
    const asIs = (value: Buffer) => value;
    return new Promise((resolve) => {
      this.client.makeUnaryRequest(path, asIs, asIs, bytes, this.metadata(more), (error, value) =>
        resolve(error ? refusalOf(error) : value!),
      );
    });
  }

  open(rpc: 'sendStreamingMessage' | 'subscribeToTask', request: object, more: CallMore = {}): OpenGrpcStream {
    const { path, requestSerialize, responseDeserialize } = A2AService[rpc];
    const message = (rpc === 'sendStreamingMessage' ? sdk.SendMessageRequest : sdk.SubscribeToTaskRequest).fromJSON(
      request,
    );
    return new OpenGrpcStream(
      this.client.makeServerStreamRequest(
        path,
        requestSerialize as (value: unknown) => Buffer,
        responseDeserialize,
        message,
        this.metadata(more),
        more.options ?? {},
      ),
    );
  }

  close(): void {
    this.client.close();
  }

  private metadata({ metadata = {}, token = this.gateway.token }: CallMore): Metadata {
    const made = new Metadata();
    if (token !== null) made.set('authorization', `Bearer ${token}`);
    for (const [name, values] of Object.entries(metadata)) for (const value of [values].flat()) made.add(name, value);
    return made;
  }
}

/** A stream that reads an event only when `next` is called. */
export class OpenGrpcStream {
  readonly ended: Promise<Refused | 'ok'>;
  private readonly events: AsyncIterator<sdk.StreamResponse>;

  constructor(readonly call: ClientReadableStream<sdk.StreamResponse>) {
    this.ended = new Promise((resolve) => {
      call.on('error', () => undefined); // the status event reports the same, and also a good end
      call.on('status', (status) => resolve(status.code === Status.OK ? 'ok' : refusalOf(status)));
    });
    this.events = call[Symbol.asyncIterator]() as AsyncIterator<sdk.StreamResponse>;
  }

  /** Reads the next event in JSON; undefined at the end, also after an error. */
  async next(): Promise<any> {
    const next = await this.events.next().catch(() => ({ done: true, value: undefined }));
    return next.done ? undefined : sdk.StreamResponse.toJSON(next.value as sdk.StreamResponse);
  }

  async rest(): Promise<any[]> {
    const all: unknown[] = [];
    for (let event = await this.next(); event !== undefined; event = await this.next()) all.push(event);
    return all;
  }
}

function refusalOf(error: StatusObject): Refused {
  const [bin] = error.metadata.get('grpc-status-details-bin');
  const details = bin === undefined ? [] : decodeStatus(bin as Buffer).details;
  const info = details.find(({ typeUrl }) => typeUrl.endsWith('ErrorInfo'));
  const [requestId] = error.metadata.get('x-request-id');
  return {
    code: error.code,
    message: error.details,
    types: details.map(({ typeUrl }) => typeUrl.slice(typeUrl.lastIndexOf('.') + 1)),
    raw: (bin as Buffer | undefined) ?? Buffer.alloc(0),
    ...(info && { info: decodeErrorInfo(info.value) }),
    ...(requestId !== undefined && { requestId: requestId.toString() }),
  };
}
