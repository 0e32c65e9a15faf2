/**
 * What one process remembers of an object's release between passes. Nothing here is needed for being right: a restart
 * forgets it all, and the next pass reads storage anew.
 */
import type { NotConnectedReason } from '../../runtime/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import type { ReleaseKey, ReleaseMark, ReleaseReader, ReleaseStatus, ReleaseSummary } from '../../helm/index.ts';
import { deepEqual } from '../merge-patch.ts';
import { uidOf } from './proxy.ts';
import type { Made } from './proxy-conditions.ts';

/** The newest record as last read; `recordVersion` undefined: there was none. */
interface Known {
  readonly recordUid?: string;
  readonly recordVersion?: string;
}

/** What a pass ended with that had nothing to write. */
export interface Settled {
  /** As the cache has it: one that changed is another object. */
  readonly proxy: HelmReleaseProxy;
  readonly release: ReleaseSummary | undefined;
  readonly made: Made | undefined;
  readonly clusterUID: string | undefined;
}

export class ReleaseMemory {
  /** The object was read from the server since this replica began to serve its cluster. */
  isConfirmed = false;
  #settled: Settled | undefined;
  #known: Known | undefined;
  #operation: AbortController | undefined;
  #onCluster: ((reason: NotConnectedReason | undefined) => void) | undefined;
  #held: { readonly uid: string; readonly status: ReleaseStatus; readonly atMs: number } | undefined;
  #valuesDigest: { readonly generation: number; readonly digest: string } | undefined;
  #wantedUpgrade: string | undefined;

  /** Why one upgrade is wanted although the release is made from what it should be made from; undefined: none is. */
  get wantedUpgrade(): string | undefined {
    return this.#wantedUpgrade;
  }

  /** Asks for one upgrade, or with undefined (an operation began) takes that back. ReleaseMemories.wantUpgrade wakes the object, too. */
  wantUpgrade(reason: string | undefined): void {
    this.#wantedUpgrade = reason;
  }

  /**
   * Our own operation runs: the changes it makes are no news. The signal aborts when the object does not want it any more;
   * `onCluster` is told when the cluster goes out of service meanwhile (why), and when it is back (undefined).
   */
  begin(onCluster?: (reason: NotConnectedReason | undefined) => void): AbortSignal {
    this.#onCluster = onCluster;
    this.#operation = new AbortController();
    return this.#operation.signal;
  }

  end(): void {
    this.#operation = undefined;
    this.#onCluster = undefined;
  }

  /** The cluster under the operation that runs, if one does, went out of service, or is in service. */
  clusterChanged(reason: NotConnectedReason | undefined): void {
    this.#onCluster?.(reason);
  }

  /** Breaks off the operation that runs, if one does. */
  interrupt(reason: Error): void {
    this.#operation?.abort(reason);
  }

  /** Notes what storage was seen to hold. */
  saw(summary: ReleaseSummary | undefined): void {
    this.#known = { recordUid: summary?.recordUid, recordVersion: summary?.recordVersion };
  }

  /** Is the watch still behind what was read already? Then storage must be read from the server. */
  isAheadOf(mark: ReleaseMark | undefined): boolean {
    if (this.#known?.recordVersion === undefined) return false;
    return mark === undefined || isNewer(this.#known.recordVersion, mark.recordVersion);
  }

  /**
   * Does the watch tell something that no pass has seen? Events of our own operations come late, and must not wake the
   * object: a failing upgrade would be tried again at once instead of after its back-off.
   */
  isNews(reader: ReleaseReader, key: ReleaseKey): boolean {
    if (this.#operation !== undefined) return false;
    if (this.#known === undefined) return true;
    const mark = reader.marks(key)[0];
    const { recordUid, recordVersion } = this.#known;
    if (mark === undefined || recordVersion === undefined)
      return (mark === undefined) !== (recordVersion === undefined);
    if (mark.recordUid === recordUid && mark.recordVersion === recordVersion) return false;
    return !isNewer(recordVersion, mark.recordVersion);
  }

  /** Notes a pass that left the object as it was. */
  settle(settled: Settled): void {
    this.#settled = settled;
  }

  /** Did the last pass find just this, and nothing to write? */
  isSettled(now: Settled): boolean {
    const before = this.#settled;
    return (
      before?.proxy === now.proxy &&
      before.release === now.release &&
      before.clusterUID === now.clusterUID &&
      deepEqual(before.made, now.made)
    );
  }

  /** When the release was first seen in this state under this record (epoch, milliseconds). */
  heldSince(summary: ReleaseSummary, nowMs: number): number {
    if (this.#held?.uid !== summary.recordUid || this.#held.status !== summary.status) {
      this.#held = { uid: summary.recordUid, status: summary.status, atMs: nowMs };
    }
    return this.#held.atMs;
  }

  /** The digest of a generation's values, computed once: a large text costs milliseconds, and each resync asks. */
  valuesDigest(generation: number, compute: () => string): string {
    if (this.#valuesDigest?.generation !== generation) this.#valuesDigest = { generation, digest: compute() };
    return this.#valuesDigest.digest;
  }
}

/** By object uid. */
export class ReleaseMemories {
  readonly #byUid = new Map<string, ReleaseMemory>();
  readonly #onWanted = new Set<{ readonly tell: (proxy: HelmReleaseProxy) => void }>();

  /** One `helm upgrade` is to put the object's release right (drift with `correction: Upgrade`). */
  wantUpgrade(proxy: HelmReleaseProxy, reason: string): void {
    this.of(uidOf(proxy)).wantUpgrade(reason);
    for (const { tell } of [...this.#onWanted]) tell(proxy);
  }

  /** Told the objects for which an upgrade is wanted. Must not throw. Returns the removal, by identity. */
  onWanted(tell: (proxy: HelmReleaseProxy) => void): () => void {
    const handler = { tell };
    this.#onWanted.add(handler);
    return () => {
      this.#onWanted.delete(handler);
    };
  }

  of(uid: string): ReleaseMemory {
    let memory = this.#byUid.get(uid);
    if (memory === undefined) this.#byUid.set(uid, (memory = new ReleaseMemory()));
    return memory;
  }

  forget(uid: string): void {
    this.#byUid.delete(uid);
  }
}

/** As numbers, which resourceVersions are on every server that conforms (KEP-5504); others are taken for not newer. */
function isNewer(a: string, b: string): boolean {
  const [left, right] = [Number(a), Number(b)];
  return Number.isSafeInteger(left) && Number.isSafeInteger(right) && left > right;
}
