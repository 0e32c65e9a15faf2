import type { KubeObject } from '../kube/index.ts';
import type { StirredKind } from './tracked-entry.ts';
import type { ObjectId } from './types.ts';

export interface TrackOptions {
  /** Edits of fields that the manifest does not set count, too (extraFields). */
  readonly wide: boolean;
  /** What was verified of objects that were tracked before still holds: the same revision and the same rules. */
  readonly keep: boolean;
}

/** An object of which the newest known state is not the one that was verified. */
export interface Stirred {
  /** Its place in the inventory that was tracked. */
  readonly index: number;
  readonly id: ObjectId;
  readonly kind: StirredKind;
}

/** What a verification found of one object, or a correction made of it. */
export interface Settled {
  /** The object that was read or written; absent when there is none. */
  readonly live?: KubeObject;
  /** Of `live`, where it does not say. */
  readonly resourceVersion?: string;
  /** A verdict's `watch`: managers whose edits stir the object, too. */
  readonly watch: readonly string[];
  /**
   * Everybody's edits stir the object: for one that is left drifting. A field that was taken away is nobody's, so whoever
   * puts it back leaves no trace in the entries of Helm or of `watch`.
   */
  readonly wide?: boolean;
  /**
   * The server said that it does not serve the kind. A watch may not find out: where a CRD was deleted and made again
   * between two of its attempts, it goes on as if nothing had been.
   */
  readonly notServed?: boolean;
}
