/**
 * Watches see what has Helm's label. An object that is missing, or lost the label, and is only told of is out of their
 * sight: somebody may make it again, or go on with it, and no event tells. So it is asked for again, less and less often.
 */
import type { InventoryObject } from '../../drift/index.ts';
import { hasHelmLabel } from '../../drift/index.ts';
import type { Differing } from './finding.ts';

/** Who deletes an object to make it anew does so within seconds. Milliseconds. */
const FIRST_PAUSE_MS = 2_000;
/** One GET so often for each such object costs little, however many they are. Milliseconds. */
const MOST_PAUSE_MS = 300_000;

/** When to ask for it again, milliseconds from now; undefined: the watch will tell. `beforeMs`: the last such pause for the same finding. */
export function pauseOutOfSight(
  { fromCrds }: Pick<InventoryObject, 'fromCrds'>,
  verdict: Differing,
  beforeMs: number | undefined,
): number | undefined {
  // Those of crds/ are watched by their names.
  if (fromCrds || !isOutOfSight(verdict)) return undefined;
  return beforeMs === undefined ? FIRST_PAUSE_MS : Math.min(2 * beforeMs, MOST_PAUSE_MS);
}

function isOutOfSight(verdict: Differing): boolean {
  switch (verdict.state) {
    case 'Missing':
      return true;
    case 'Modified':
    case 'Foreign':
      return !hasHelmLabel(verdict.live);
    default:
      return false;
  }
}
