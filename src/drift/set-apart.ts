import { child, isObject } from './twin.ts';
import type { InventoryObject, JsonObject, LiveObject, PathPattern, Verdict } from './types.ts';

/** On a workload object, in the manifest or live: drift detection leaves it out. */
export const OPT_OUT_ANNOTATION = 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-detection';
export const OPT_OUT_VALUE = 'disabled';

/** Whose an object is, as Helm writes it (helm: pkg/action/validate.go) and checks it before it takes an object over. */
const RELEASE_NAME = 'meta.helm.sh/release-name';
const RELEASE_NAMESPACE = 'meta.helm.sh/release-namespace';

/** What needs no comparison: an object that is going, taken out, or another release's. */
export function setApart(
  object: InventoryObject,
  live: LiveObject,
  ignore: readonly PathPattern[],
): Verdict | undefined {
  if (live.metadata.deletionTimestamp !== undefined) return { state: 'Terminating', live };
  const by = isOptedOut(live) ? 'annotation' : takenOut(object.wanted, ignore);
  if (by !== undefined) return { state: 'Excluded', live, by };
  const owner = foreignOwner(object.wanted, live);
  return owner === undefined ? undefined : { state: 'Foreign', live, owner };
}

/** What takes an object out by the manifest or by the user's rules. */
export function takenOut(wanted: JsonObject, ignore: readonly PathPattern[]): 'annotation' | 'rule' | undefined {
  if (isOptedOut(wanted)) return 'annotation';
  return ignore.some((pattern) => pattern.length === 0) ? 'rule' : undefined;
}

/** Whether the annotation takes the object out. */
export function isOptedOut(object: JsonObject): boolean {
  return annotations(object)[OPT_OUT_ANNOTATION] === OPT_OUT_VALUE;
}

/** `namespace/name` of the other release that says the object is its own; objects from crds/ are no release's. */
function foreignOwner(wanted: JsonObject, live: JsonObject): string | undefined {
  const ours = annotations(wanted);
  const theirs = annotations(live);
  if (ours[RELEASE_NAME] === undefined) return undefined;
  const owner = [RELEASE_NAMESPACE, RELEASE_NAME].map((key) => theirs[key] ?? ours[key] ?? '').join('/');
  return owner === `${ours[RELEASE_NAMESPACE] ?? ''}/${ours[RELEASE_NAME]}` ? undefined : owner;
}

function annotations(object: JsonObject): Partial<Record<string, string>> {
  const found = child(child(object, 'metadata'), 'annotations');
  if (!isObject(found)) return {};
  return Object.fromEntries(
    Object.entries(found).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  );
}
