import { pino } from 'pino';
import type { Logger as PinoLogger } from 'pino';
import pretty from 'pino-pretty';
import { traceFields } from './tracing.ts';

/** What a log line may carry besides its message. Values, tokens and Secret contents never stand here. */
export type LogFields = Readonly<Record<string, unknown>>;

/** A leveled logger: one line per fact. `with` adds fields (the cluster's name above all) to every later line. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  /** `fields.err` takes an Error; its chain of causes is logged as one line. */
  error(message: string, fields?: LogFields): void;
  with(fields: LogFields): Logger;
}

export interface LoggerOptions {
  /** `json`: one JSON object per line. `text`: for people at a terminal. */
  format: 'json' | 'text';
  level: 'debug' | 'info' | 'warn' | 'error';
  /** File descriptor written to; 2 (standard error) by default, so that standard output stays the command's own. */
  fd?: number;
}

/** The logger of the binary. pino: the field's usual JSON logger; pino-pretty is its text form. */
export function createLogger(options: LoggerOptions): Logger {
  const fd = options.fd ?? 2;
  const destination =
    options.format === 'text'
      ? pretty({
          destination: fd,
          sync: true,
          colorize: false,
          translateTime: 'SYS:HH:MM:ss.l',
          ignore: 'pid,hostname',
        })
      : pino.destination({ dest: fd, sync: false, minLength: 0 });
  return new PinoAdapter(
    pino(
      {
        level: options.level,
        base: null,
        timestamp: pino.stdTimeFunctions.isoTime,
        formatters: { level: (level) => ({ level }) },
        // Of a line that belongs to a trace: pino asks at each line.
        mixin: () => traceFields() ?? {},
      },
      destination,
    ),
  );
}

/** Says nothing: the default of library users who pass no logger, and of tests. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silentLogger,
};

class PinoAdapter implements Logger {
  readonly #inner: PinoLogger;

  constructor(inner: PinoLogger) {
    this.#inner = inner;
  }

  debug(message: string, fields: LogFields = {}): void {
    this.#inner.debug(flat(fields), message);
  }

  info(message: string, fields: LogFields = {}): void {
    this.#inner.info(flat(fields), message);
  }

  warn(message: string, fields: LogFields = {}): void {
    this.#inner.warn(flat(fields), message);
  }

  error(message: string, fields: LogFields = {}): void {
    this.#inner.error(flat(fields), message);
  }

  with(fields: LogFields): Logger {
    return new PinoAdapter(this.#inner.child(flat(fields)));
  }
}

/** Errors as one string with their causes: a stack on every line helps nobody who reads a fleet's log. */
function flat(fields: LogFields): Record<string, unknown> {
  const out: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(fields)) out[key] = value instanceof Error ? errorText(value) : value;
  return out;
}

/** "outer: cause: root", each part once. */
export function errorText(error: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = error; at !== undefined && parts.length < 6; at = at instanceof Error ? at.cause : undefined) {
    const text = at instanceof Error ? at.message : typeof at === 'string' ? at : JSON.stringify(at);
    if (text !== '' && !parts.some((part) => part.includes(text))) parts.push(text);
  }
  return parts.join(': ');
}
