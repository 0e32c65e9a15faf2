import type { Query } from './paths.ts';
import type { CallOptions } from './types.ts';

/** One API call. */
export interface ApiRequest extends CallOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Without query, percent-encoded. */
  readonly path: string;
  readonly query?: Query;
  readonly accept?: string;
  readonly body?: string;
  readonly contentType?: string;
  /** For metrics: get, list, watch, create, update, patch, apply, delete. Default: the method in small letters. */
  readonly verb?: string;
}

/** A call whose answer goes on. */
export interface StreamRequest extends ApiRequest {
  /** Longest silence within the answer, milliseconds. */
  readonly idleLimitMs: number;
}

/** An answer below 400. */
export interface ApiAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** For messages. */
export function nameOf(request: Pick<ApiRequest, 'path'> & { readonly method: string }): string {
  return `${request.method} ${request.path}`;
}
