/**
 * Everything that this room throws.
 *
 * | code | class | what the caller does |
 * | --- | --- | --- |
 * | CAPSTAN_NOT_CONFORMING | NotConformingError | mends the provider: it does not keep its contract |
 */
export class NotConformingError extends Error {
  readonly code = 'CAPSTAN_NOT_CONFORMING';

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}
