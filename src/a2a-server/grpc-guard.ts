import { ServerInterceptingCall, type Metadata, type ServerInterceptor } from '@grpc/grpc-js';
import { limitChunks, resetAfterStatus, type CallHead } from './grpc-call.js';

type NextCall = Parameters<ServerInterceptor>[1];
type Listener = Parameters<NextCall['start']>[0];

/** Decides on calls before their messages are read. The handler of a refused call sends the error. */
export interface CallGate {
  /** How long a client may take to send its request, in milliseconds. */
  readonly requestTimeoutMs: number;
  /** Resolves to false when the call is refused; never rejects. */
  admit(head: CallHead, method: string): Promise<boolean>;
  /** Refuses a call that is not complete in time. */
  expire(head: CallHead): void;
  /** Refuses a call that arrives in too many tiny chunks. */
  refuseChunks(head: CallHead): void;
}

/** Makes the interceptor that applies a gate to each call. */
export function guardCalls(gate: CallGate): ServerInterceptor {
  return ({ path }, call) => new GuardedCall(call, path, gate);
}

/**
 * Call that is read only after its caller is identified, and only for a limited time. A refused call reaches its
 * handler at once, with an empty message, and its stream is reset after the status.
 */
class GuardedCall extends ServerInterceptingCall {
  private state: 'reading' | 'complete' | 'refused' = 'reading';
  private isAdmitted = false;
  private hasMessage = false;
  private timer?: NodeJS.Timeout;

  constructor(
    call: NextCall,
    private readonly method: string,
    private readonly gate: CallGate,
  ) {
    super(call);
  }

  override start(listener: Listener): void {
    super.start({
      onReceiveMetadata: (metadata) => void this.admit(metadata, listener),
      onReceiveMessage: (message) => {
        if (this.state !== 'reading') return;
        this.hasMessage = true;
        listener.onReceiveMessage(message);
      },
      onReceiveHalfClose: () => {
        if (this.endReading('complete')) listener.onReceiveHalfClose();
      },
      onCancel: () => {
        this.endReading('refused');
        // The client would otherwise continue to send, and the stream would stay open until it ends its request.
        if (this.state === 'refused') resetAfterStatus(this);
        listener.onCancel();
      },
    });
  }

  override startRead(): void {
    if (this.state !== 'refused') super.startRead();
  }

  private async admit(metadata: Metadata, listener: Listener): Promise<void> {
    const head: CallHead = { metadata, getHost: () => this.getHost(), getPeer: () => this.getPeer() };
    this.timer = setTimeout(() => {
      this.gate.expire(head);
      this.refuse(metadata, listener);
    }, this.gate.requestTimeoutMs);
    if (!(await this.gate.admit(head, this.method))) return this.refuse(metadata, listener);
    if (this.state !== 'reading') return;
    this.isAdmitted = true;
    limitChunks(this, () => {
      this.gate.refuseChunks(head);
      this.refuse(metadata, listener);
    });
    listener.onReceiveMetadata(metadata);
  }

  private refuse(metadata: Metadata, listener: Listener): void {
    if (!this.endReading('refused')) return;
    if (!this.isAdmitted) listener.onReceiveMetadata(metadata);
    if (!this.hasMessage) listener.onReceiveMessage(Buffer.alloc(0));
    listener.onReceiveHalfClose();
  }

  /** Returns false when reading had ended before. */
  private endReading(state: 'complete' | 'refused'): boolean {
    if (this.state !== 'reading') return false;
    clearTimeout(this.timer);
    this.state = state;
    return true;
  }
}
