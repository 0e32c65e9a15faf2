import { InvalidClusterNameError } from './errors.ts';
import type { ClusterName, Request } from './types.ts';

/** Longest name: two DNS names, a provider's prefix and the separators; longer ones would not fit in a log line's field. */
const MAX_NAME_LENGTH = 600;
/** Neither white space nor control characters: the name stands in log lines, metrics and file names' hashes. */
const NAME = /^[\x21-\x7e]+$/;

/** Brands and checks a name. Throws InvalidClusterNameError. */
export function clusterName(text: string): ClusterName {
  if (text === '') throw new InvalidClusterNameError(text, 'it is empty');
  if (text.length > MAX_NAME_LENGTH) throw new InvalidClusterNameError(text, `it is longer than ${MAX_NAME_LENGTH}`);
  if (!NAME.test(text)) throw new InvalidClusterNameError(text, 'only printable ASCII without spaces is allowed');
  return text as ClusterName;
}

/** The cluster that the manager itself works from (the management cluster). It is never in the fleet. */
export const LOCAL_CLUSTER: ClusterName = clusterName('local');

/** The name of a cluster that an object in a namespace stands for. */
export function namespacedClusterName(namespace: string, name: string): ClusterName {
  return clusterName(`${namespace}/${name}`);
}

/** The parts of a `namespace/name` cluster name (`provider#` is left out), or undefined when it has another form. */
export function splitClusterName(cluster: ClusterName): { namespace: string; name: string } | undefined {
  const bare = cluster.slice(cluster.indexOf('#') + 1);
  const slash = bare.indexOf('/');
  if (slash <= 0 || slash === bare.length - 1 || bare.includes('/', slash + 1)) return undefined;
  return { namespace: bare.slice(0, slash), name: bare.slice(slash + 1) };
}

/** `provider#name`: keeps the names of several providers apart. */
export function prefixedClusterName(provider: string, cluster: ClusterName): ClusterName {
  return clusterName(`${provider}#${cluster}`);
}

/** A request's identity. The space never occurs in a part, so keys cannot collide. */
export function requestKey(request: Request): string {
  return `${request.cluster} ${request.namespace} ${request.name}`;
}
