/** The sessions of all releases that are looked at. */
import type { Cluster, Request } from '../../runtime/index.ts';
import { DriftSession } from './session.ts';
import type { Trackers } from './trackers.ts';

interface Open {
  readonly session: DriftSession;
  readonly request: Request;
}

/** By uid of the object; a session is of one engagement of one cluster. */
export class Sessions {
  readonly #trackers: Trackers;
  readonly #delaysMs: readonly number[];
  readonly #open = new Map<string, Open>();

  constructor(trackers: Trackers, delaysMs: readonly number[]) {
    this.#trackers = trackers;
    this.#delaysMs = delaysMs;
  }

  get size(): number {
    return this.#open.size;
  }

  find(uid: string): DriftSession | undefined {
    return this.#open.get(uid)?.session;
  }

  /** The object's session on this engagement. One of an earlier engagement is closed. */
  of(uid: string, cluster: Cluster, request: Request): DriftSession {
    const known = this.find(uid);
    if (known?.cluster === cluster) return known;
    this.close(uid);
    const tracker = this.#trackers.of(cluster, uid);
    const session = new DriftSession({ uid, cluster, tracker, delaysMs: this.#delaysMs });
    this.#open.set(uid, { session, request });
    return session;
  }

  /** A tracker has something of this session. Returns what is to be asked for, unless the session is over. */
  stirred(uid: string, nowMs: number): Request | undefined {
    const open = this.#open.get(uid);
    if (open === undefined) return undefined;
    open.session.stirredAtMs ??= nowMs;
    return open.request;
  }

  /** Nothing of the object's release is watched any more. */
  close(uid: string): void {
    const session = this.find(uid);
    if (session === undefined) return;
    this.#open.delete(uid);
    this.#trackers.leave(session.cluster, uid);
  }

  /** The engagement ended. */
  disengaged(cluster: Cluster): void {
    for (const [uid, { session }] of this.#open) if (session.cluster === cluster) this.#open.delete(uid);
    this.#trackers.disengaged(cluster);
  }

  closeAll(): void {
    this.#open.clear();
    this.#trackers.close();
  }
}
