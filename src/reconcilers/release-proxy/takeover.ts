/**
 * May a release that somebody's operation holds (`pending-*`, `uninstalling`) be taken over? Helm keeps no lock but the
 * record's status, so a record of a broken-off operation looks like one of a live operation (caaph W16).
 */
import type { HelmReleaseProxyStatus, ReleaseOperation } from '../../api/index.ts';
import type { ReleaseSummary } from '../../helm/index.ts';

/** Beyond an operation's own time limit, in milliseconds: helm rolls back (`atomic`) and writes its last word after it. */
const SLACK_MS = 30_000;

export type Takeover =
  /** Nobody works on it: `why` says how that is known. */
  | { readonly free: true; readonly why: string }
  /** Somebody may be working on it until `untilMs` (epoch, milliseconds). */
  | { readonly free: false; readonly untilMs: number };

export interface TakeoverInput {
  readonly observed: ReleaseSummary;
  /** What we wrote down about the release; undefined when that was about another cluster of the same name. */
  readonly recorded: HelmReleaseProxyStatus | undefined;
  readonly nowMs: number;
  /** Milliseconds that an operation of unknown origin is given: the object's own timeout. */
  readonly timeoutMs: number;
  /** When this process first saw the record in this state (epoch, milliseconds). */
  readonly firstSeenMs: number;
}

/**
 * Pure. The caller is the only one in this process that works on the release, so an operation that this controller wrote
 * down belongs to an earlier life of it, and helm died with that life or was ended by it.
 */
export function takeover(input: TakeoverInput): Takeover {
  const { observed, recorded, nowMs } = input;
  if (isOurs(input)) return { free: true, why: 'an operation of this controller was broken off' };
  // A live install, upgrade or rollback always writes a new revision; one that we saw deployed was rewritten afterwards.
  // An uninstall keeps the revision, so this says nothing about one.
  if (
    observed.status !== 'uninstalling' &&
    recorded?.status === 'deployed' &&
    (recorded.revision ?? 0) >= observed.revision
  )
    return { free: true, why: `revision ${observed.revision} had been deployed before` };
  const untilMs = beganMs(input) + input.timeoutMs;
  if (untilMs <= nowMs) return { free: true, why: 'it is older than its time limit' };
  return { free: false, untilMs };
}

function isOurs({ observed, recorded }: TakeoverInput): boolean {
  const operation = recorded?.operation;
  if (operation === undefined) return false;
  // A reinstall finishes the uninstall first, under its own name.
  if (observed.status === 'uninstalling') return true;
  return makesRevision(operation, observed.revision) && !beganAfter(operation, observed.lastDeployed);
}

/** `atomic` adds a rollback, which is one revision more. */
function makesRevision(operation: ReleaseOperation, revision: number): boolean {
  const made = operation.revision ?? 0;
  return made === revision || made + 1 === revision;
}

/** A record that was begun after ours must have ended is somebody else's. Both clocks are this machine's where it is ours. */
function beganAfter(operation: ReleaseOperation, written: string): boolean {
  const limitMs = (operation.timeoutSeconds ?? 0) * 1000 + SLACK_MS;
  return Date.parse(written) > Date.parse(operation.startedAt ?? '') + limitMs;
}

/** When the operation began: helm writes the time of its start into a pending record; an uninstall leaves the old time there. */
function beganMs({ observed, firstSeenMs, nowMs }: TakeoverInput): number {
  const written = Date.parse(observed.lastDeployed);
  if (observed.status === 'uninstalling' || Number.isNaN(written)) return firstSeenMs;
  // A clock ahead of ours must not prolong the wait beyond one time limit.
  return Math.min(written, nowMs);
}
