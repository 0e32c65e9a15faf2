/** More than one HelmReleaseProxy for one placement (caaph W10): seen after `clusterctl move`, and after CAAPH raced with its own cache. */
import { INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { ownerOf } from '../release-proxy/collision.ts';

export interface Duplicates {
  /** The one that counts; undefined when there is none. */
  readonly keep: HelmReleaseProxy | undefined;
  /** May go without harm: never installed anything, or names the very release of `keep` (whose owner `keep` is, so that its deletion uninstalls nothing). */
  readonly remove: readonly HelmReleaseProxy[];
  /** Installed a release of its own: a person must say which is wanted. */
  readonly conflicting: readonly HelmReleaseProxy[];
}

/** Sorts out who counts, by the rule that decides whose a release is. One that is being deleted counts only when there is no other. Pure. */
export function sortOut(proxies: readonly HelmReleaseProxy[]): Duplicates {
  const alive = proxies.filter((proxy) => proxy.metadata.deletionTimestamp === undefined);
  const keep = ownerOf(alive) ?? ownerOf(proxies);
  const others = alive.filter((proxy) => proxy.metadata.uid !== keep?.metadata.uid);
  const harmless = (proxy: HelmReleaseProxy): boolean =>
    !hasReleases(proxy) || (keep !== undefined && sameRelease(proxy, keep));
  return {
    keep,
    remove: others.filter(harmless),
    conflicting: others.filter((proxy) => !harmless(proxy)),
  };
}

/** May there be a release that this object made? A failed or interrupted install leaves one too. */
function hasReleases({ metadata, status }: HelmReleaseProxy): boolean {
  return (
    metadata.annotations?.[INSTALLED_ANNOTATION] !== undefined ||
    (status?.status ?? '') !== '' ||
    status?.operation !== undefined
  );
}

function sameRelease(a: HelmReleaseProxy, b: HelmReleaseProxy): boolean {
  const name = a.spec.releaseName ?? '';
  return name !== '' && name === b.spec.releaseName && a.spec.namespace === b.spec.namespace;
}
