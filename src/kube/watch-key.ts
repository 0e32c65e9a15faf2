import type { WatchTarget } from './types.ts';

/** The string form of a watch target: equal for targets that can share one watch. Made of an API path and what selects, never of contents. */
export function watchKey(target: WatchTarget): string {
  const { group, version, plural } = target.resource;
  return JSON.stringify([
    group,
    version,
    plural,
    target.namespace ?? '',
    target.labelSelector ?? '',
    target.fieldSelector ?? '',
    target.form,
    target.keepManagedFields === true,
  ]);
}
