import pino, { type Logger as PinoLogger, type LoggerOptions } from 'pino';
import { redact } from '../secrets/redact.js';

export type Logger = PinoLogger;
export const LOGGER = Symbol('Logger');

/** JSON lines on standard output; every object passes `redact`, so a secret that slips in does not slip out. */
export function createLogger(level: LoggerOptions['level'], destination?: pino.DestinationStream): Logger {
  const options: LoggerOptions = {
    level,
    base: undefined,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: (object) => redact(object) as Record<string, unknown> },
    // `redact` has made plain objects of errors; what pino makes of them by itself would say less.
    serializers: { err: (err: unknown) => err },
  };
  return destination ? pino(options, destination) : pino(options);
}
