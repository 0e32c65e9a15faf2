/** Two objects that name one release on one cluster (caaph W24). Only one may have it. */
import { INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';

/**
 * Whose the release is: of those that already installed it the oldest, else the oldest of all. Also of objects that are
 * being deleted: until they are gone their release is theirs. Pure, and the same whoever of them asks.
 */
export function ownerOf(claims: readonly HelmReleaseProxy[]): HelmReleaseProxy | undefined {
  return [...claims].sort(byClaim)[0];
}

/** The object that keeps the release from `proxy`, or undefined when it is its own. `others` may contain `proxy` itself. */
export function collidesWith(
  proxy: HelmReleaseProxy,
  others: readonly HelmReleaseProxy[],
): HelmReleaseProxy | undefined {
  const rivals = others.filter((other) => other.metadata.uid !== proxy.metadata.uid);
  if (rivals.length === 0) return undefined;
  const owner = ownerOf([proxy, ...rivals]);
  return owner?.metadata.uid === proxy.metadata.uid ? undefined : owner;
}

function byClaim(a: HelmReleaseProxy, b: HelmReleaseProxy): number {
  return (
    Number(hasInstalled(b)) - Number(hasInstalled(a)) ||
    compare(a.metadata.creationTimestamp ?? '', b.metadata.creationTimestamp ?? '') ||
    compare(a.metadata.uid ?? '', b.metadata.uid ?? '')
  );
}

function hasInstalled(proxy: HelmReleaseProxy): boolean {
  return proxy.metadata.annotations?.[INSTALLED_ANNOTATION] !== undefined;
}

/** RFC 3339 times in UTC and uids sort as text. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
