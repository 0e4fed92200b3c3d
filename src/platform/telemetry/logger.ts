import pino, { type Logger as PinoLogger, type LoggerOptions } from 'pino';
import { redact } from '../secrets/redact.js';

export type Logger = PinoLogger;
export const LOGGER = Symbol('Logger');

/** Writes JSON lines to standard output. Every object passes `redact`, so that no secret reaches the log. */
export function createLogger(level: LoggerOptions['level'], destination?: pino.DestinationStream): Logger {
  const options: LoggerOptions = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: (object) => redact(object) as Record<string, unknown> },
    // `redact` has already turned errors into plain objects; the serializer of pino would drop fields of them.
    serializers: { err: (err: unknown) => err },
  };
  return destination ? pino(options, destination) : pino(options);
}
