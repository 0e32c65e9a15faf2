import { isKubeError, KubeError } from '../../kube/index.ts';
import { errorText } from '../../telemetry/index.ts';

/** Errors whose texts are about the way to the object. */
const TELL_NO_VALUES: ReadonlySet<string> = new Set(['Forbidden', 'Unauthorized', 'Network', 'TimedOut']);

/** An error for people: without method and path. A server's "forbidden" names user, verb, resource and namespace itself. */
export function explain(error: unknown): string {
  // A limit's cause is the same limit, seen further down.
  const whole = isKubeError(error, 'TimedOut') ? error.message : errorText(error);
  const text = whole.replace(/(^|: )[A-Z]+ \/\S+: /g, '$1');
  if (isKubeError(error, 'Forbidden')) return `no permission: ${text}`;
  return isKubeError(error, 'Unauthorized') ? `the credentials are refused: ${text}` : text;
}

/** The same about one object: of a Secret, the server's own words may quote values. */
export function explainAbout(error: unknown, isSecret: boolean): string {
  if (!isSecret || !(error instanceof KubeError) || TELL_NO_VALUES.has(error.code)) return explain(error);
  return `${error.code}${error.status === undefined ? '' : ` (HTTP ${error.status})`}`;
}

/** Does an error say that nothing more is to be had from this cluster? */
export function isClusterGone(error: unknown): boolean {
  return isKubeError(error, 'Network', 'Unauthorized', 'ConnectionClosed');
}
