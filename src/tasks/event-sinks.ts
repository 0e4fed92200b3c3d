import { Injectable } from '@nestjs/common';
import type { EventSink } from './event-sink.port.js';

/** The rows that other rooms add to the commit of an event; they say so when they start. */
@Injectable()
export class EventSinks {
  private readonly sinks: EventSink[] = [];

  add(sink: EventSink): void {
    this.sinks.push(sink);
    this.sinks.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** In a fixed order, so that one kind of change is one prepared statement. */
  get all(): readonly EventSink[] {
    return this.sinks;
  }
}
