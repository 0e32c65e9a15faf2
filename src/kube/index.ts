/**
 * The room `kube`: one API server, seen from a client. A newcomer reads `types.ts` (the contract), then `connection.ts`
 * (sockets and credentials), `rest-client.ts` (calls), `list-watch.ts` (how a watch survives) and `watch-set.ts` (who
 * shares it).
 */
export type * from './types.ts';
export * from './errors.ts';
export { asError, linkAbort, raceAbort, reasonOf, sleep, withTimeout } from './abort.ts';
export type { LinkedAbort } from './abort.ts';
export { Backoff, fullJitter } from './backoff.ts';
export type { BackoffOptions } from './backoff.ts';
export { formatDuration, parseDuration } from './duration.ts';
export { Connection } from './connection.ts';
export { DEFAULT_REQUEST_TIMEOUT_MS } from './connection-options.ts';
export type {
  ConnectionOptions,
  InClusterOptions,
  SwapOutcome,
  UnauthorizedHook,
  WriteGuard,
} from './connection-options.ts';
export type { ApiAnswer, ApiRequest, StreamRequest } from './api-request.ts';
export type { ApiStream } from './api-stream.ts';
export { answeredHeaders, forwardedHeaders } from './forward.ts';
export type { ForwardedAnswer, ForwardRequest } from './forward.ts';
export { RestClient } from './rest-client.ts';
export { ApiDiscovery } from './discovery.ts';
export type { DiscoveryOptions } from './discovery.ts';
export { SharedWatchSet } from './watch-set.ts';
export type { WatchSetConnection, WatchSetOptions } from './watch-set.ts';
export { WatchInformer } from './informer.ts';
export type { InformerOptions } from './informer.ts';
export { listWatch } from './list-watch.ts';
export type { WatchConnection } from './list-watch.ts';
export type { ListWatchOptions, WatchProblem } from './list-watch-options.ts';
export { watchKey } from './watch-key.ts';
export { formatSelector, matchesSelector, parseSelector, validateSelector } from './selectors.ts';
export type { LabelSelector, LabelSelectorRequirement, Labels, SelectorOperator } from './selectors.ts';
