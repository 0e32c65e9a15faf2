/** Errors that end the binary with a message for its user instead of a stack trace. */
export type AppErrorCode =
  'USAGE' | 'KUBECONFIG' | 'API_SERVER' | 'MISSING_CRDS' | 'HELM' | 'LISTEN' | 'LEADERSHIP_LOST' | 'FORCED';

/** `message` says what is wrong, `advice` what to do; `exitCode` is 2 for bad usage and 1 otherwise. */
export class AppError extends Error {
  readonly code: AppErrorCode;
  readonly advice: string;

  constructor(code: AppErrorCode, message: string, options: { advice?: string; cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'AppError';
    this.code = code;
    this.advice = options.advice ?? '';
  }

  get exitCode(): number {
    return this.code === 'USAGE' ? 2 : 1;
  }
}
