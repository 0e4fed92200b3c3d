import type { ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { isOf, type CallContext } from '../../kernel/call-context.js';
import type { JsonObject } from '../../kernel/json.js';
import type { Notice } from '../../kernel/notices.js';
import { OnNotice } from '../../platform/bus/on-notice.decorator.js';
import { EventStream } from '../../platform/http/streams/event-stream.js';
import { endStream, SseStreams } from '../../platform/http/streams/sse-streams.js';
import { formatEvent } from '../../protocol/sse.js';
import { ResourceWatches } from '../sessions/resource-watches.js';

interface Stream {
  readonly ctx: CallContext;
  readonly session: string;
  readonly response: EventStream;
}

/** The GET streams of sessions of the 2025 era, which carry list changes. */
@Injectable()
export class McpStreams {
  private readonly streams = new Set<Stream>();

  constructor(
    private readonly standing: SseStreams,
    private readonly watches: ResourceWatches,
  ) {}

  /** Opens the GET stream of a session. Throws `rate_limited` above the limits for each principal, org and process. */
  openStream(ctx: CallContext, session: string, to: ServerResponse): void {
    const response = new EventStream(to);
    this.standing.hold(ctx, response);
    if (response.destroyed) return;
    const stream = { ctx, session, response };
    this.streams.add(stream);
    const leave = this.watches.attendSession(ctx, session);
    response.once('close', () => {
      this.streams.delete(stream);
      leave();
    });
    response.writeHead();
    response.write(': open\n\n');
  }

  /** Counts a subscription of the 2026-07-28 revision, which the SDK writes. Throws as `open` does. */
  hold(ctx: CallContext, response: ServerResponse): void {
    this.standing.hold(ctx, response, { beats: false });
  }

  /** Sends a notification to every session of an org that has a stream, or only to those of one caller. */
  sendNotification(org: string, method: string, caller?: string): void {
    this.send({ method }, ({ ctx }) => ctx.org.id === org && isOf(ctx, caller));
  }

  /** Sends a notification to one session. */
  tell(session: string, method: string, params: JsonObject): void {
    this.send({ method, params }, (stream) => stream.session === session);
  }

  /** Sends a message on one stream of each session, the newest (specification 2025-11-25, multiple connections). */
  private send(message: { method: string; params?: JsonObject }, isReceiver: (stream: Stream) => boolean): void {
    const frame = formatEvent({ event: 'message', data: JSON.stringify({ jsonrpc: '2.0', ...message }) });
    const receivers = [...this.streams].filter((stream) => isReceiver(stream) && !stream.response.destroyed);
    for (const { response } of new Map(receivers.map((stream) => [stream.session, stream])).values())
      response.write(frame);
  }

  @OnNotice('mcp.session-ended')
  sessionEnded({ sessionId }: Notice<'mcp.session-ended'>): void {
    for (const stream of this.streams) if (stream.session === sessionId) endStream(stream.response);
  }
}
