import type { EventEmitter2 } from '@nestjs/event-emitter';
import { VerbBus } from '../../kernel/verb-bus.js';
import { verbError } from '../../protocol/mcp/errors.js';
import type { Logger } from '../telemetry/logger.js';
import type { Ledger } from './ledger.js';

const eventNames = { 'pre-verb': 'verb.pre', 'post-verb': 'verb.post', 'verb-error': 'verb.error' } as const;

/** Creates the verb bus. Its events also reach the listeners of Nest's event emitter. */
export function createVerbBus(ledger: Ledger, watchers: EventEmitter2, log: Logger): VerbBus {
  const bus = new VerbBus({
    ledger,
    errorOf: verbError,
    onSubscriberError: (err, event) =>
      log.error({ err, verb: event.verb, phase: event.phase }, 'a verb subscriber threw'),
  });
  bus.subscribe(
    (event) => void watchers.emit(eventNames[event.phase], event),
    (phase) => watchers.listenerCount(eventNames[phase]) > 0,
  );
  return bus;
}
