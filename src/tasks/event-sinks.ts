import { Injectable } from '@nestjs/common';
import type { EventSink } from './event-sink.port.js';

/** Event sinks of other modules, which register them at startup. Each sink adds rows to the commit of an event. */
@Injectable()
export class EventSinks {
  private readonly sinks: EventSink[] = [];

  add(sink: EventSink): void {
    this.sinks.push(sink);
    this.sinks.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** The sinks in a fixed order, so that the same kinds of change always give the same prepared statement. */
  get all(): readonly EventSink[] {
    return this.sinks;
  }
}
