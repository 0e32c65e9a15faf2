/** The second half of a pass: puts back what differs, in Helm's install order, for as long as it holds (DESIGN §5.4, §5.5). */
import { objectKey, pointerOf } from '../../drift/index.ts';
import type { Correctable, Correction, InventoryObject, Path } from '../../drift/index.ts';
import type { ReleaseKey, ReleaseReader } from '../../helm/index.ts';
import { inSpan } from '../../telemetry/index.ts';
import { becoming, managersOf } from './finding.ts';
import type { Finding } from './finding.ts';
import { CALL_LIMIT_MS } from './parts.ts';
import type { DriftParts } from './parts.ts';
import { attributesOf, inParallel, isLost, textOf } from './verifying.ts';
import type { LookSubject, Seen, Verifying } from './verifying.ts';

export interface CorrectSubject extends LookSubject {
  readonly release: ReleaseKey;
  readonly reader: ReleaseReader;
  /** When what is corrected stirred (epoch, milliseconds). */
  readonly stirredAtMs: number;
  /** Is the object still as this pass began with it? Asked once the lock is held. */
  readonly isStillWanted: () => boolean;
  /** Asks for one upgrade of the release. */
  readonly wantUpgrade: (reason: string) => void;
  /** Is one asked for that has not begun? */
  readonly isUpgradeWanted: () => boolean;
}

/** Looks at an object that somebody else writes at the same time, per pass. */
const MAX_TRIES = 3;
/** Then it is let be for so long, milliseconds. */
const CONFLICT_PAUSE_MS = 1_000;
/** An upgrade that was asked for has so long to begin before it is asked about again, milliseconds. */
const UPGRADE_PAUSE_MS = 10_000;

/** What of one object may be corrected now. */
interface Plan {
  /** Fields, as JSON pointers; '' the object itself. Empty: nothing now. */
  readonly now: readonly string[];
  /** Fields that are to stay as they are for now. */
  readonly skip: readonly Path[];
  /** The earliest time for one that is to wait. */
  readonly laterMs: number | undefined;
  /** Fields that did not hold, with how often they were corrected. */
  readonly stopped: readonly { readonly field: string; readonly corrections: number }[];
}

interface Task {
  readonly seen: Seen;
  readonly verdict: Correctable;
  readonly plan: Plan;
}

export class Correcting {
  readonly #parts: DriftParts;
  readonly #subject: CorrectSubject;
  readonly #verifying: Verifying;

  constructor(parts: DriftParts, subject: CorrectSubject, verifying: Verifying) {
    this.#parts = parts;
    this.#subject = subject;
    this.#verifying = verifying;
  }

  /** Rejects when the cluster cannot be asked; what is not done then stays due. */
  async run(seen: readonly Seen[]): Promise<void> {
    if (!this.#subject.policy.mayCorrect) return;
    const tasks = seen.flatMap((one) => this.#task(one));
    if (tasks.length === 0) return;
    if (this.#subject.policy.correction === 'Upgrade') this.#upgrade(tasks);
    else await this.#apply(tasks);
  }

  /** The object's plan, when there is something to do; else its finding says what is waited for. */
  #task(seen: Seen): Task[] {
    const { verdict, object } = seen;
    if (verdict.state !== 'Modified' && verdict.state !== 'Missing') return [];
    const { session } = this.#subject;
    const nowMs = this.#parts.tools.now();
    const waitsMs = session.convergence.waits(objectKey(object.id), nowMs);
    if (waitsMs !== undefined) {
      this.#keep({ ...this.#current(seen), dueAtMs: waitsMs });
      return [];
    }
    const plan = this.#plan(object, verdict);
    if (plan === undefined) {
      this.#keep(becoming(seen.finding, { action: 'Reported' }));
      return [];
    }
    if (plan.now.length > 0) return [{ seen, verdict, plan }];
    this.#hold(seen.finding, plan);
    return [];
  }

  /** undefined: nothing of it is corrected, only told (`extraFields: Report`). */
  #plan(object: InventoryObject, verdict: Correctable): Plan | undefined {
    const { comparison } = this.#subject.policy;
    const fields: readonly { readonly path: Path }[] =
      verdict.state === 'Missing' ? [{ path: [] }] : this.#parts.tools.correctable(object, verdict, comparison);
    if (fields.length === 0) return undefined;
    const plan = {
      now: [] as string[],
      skip: [] as Path[],
      later: [] as number[],
      stopped: [] as Plan['stopped'][0][],
    };
    const { convergence } = this.#subject.session;
    for (const { path } of fields) {
      const field = pointerOf(path);
      const turn = convergence.ask(objectKey(object.id), field, this.#parts.tools.now());
      if (turn.when === 'now') plan.now.push(field);
      else plan.skip.push(path);
      if (turn.when === 'later') plan.later.push(turn.atMs);
      if (turn.when === 'never') plan.stopped.push({ field, corrections: turn.corrections });
    }
    const { now, skip, later, stopped } = plan;
    return { now, skip, stopped, laterMs: later.length === 0 ? undefined : Math.min(...later) };
  }

  /** Nothing can be done about it now: for a while, or until somebody asks. */
  #hold(finding: Finding, { laterMs, stopped }: Plan): void {
    const [first] = stopped;
    const next =
      first === undefined
        ? ({ action: 'Pending', dueAtMs: laterMs } as const)
        : ({ action: 'Stopped', message: stoppedText(finding, first), dueAtMs: laterMs } as const);
    this.#keep(becoming(finding, next));
  }

  #keep(finding: Finding): void {
    this.#subject.session.findings.set(finding.key, finding);
    this.#subject.news.became(finding);
  }

  #current({ finding }: Seen): Finding {
    return this.#subject.session.findings.get(finding.key) ?? finding;
  }

  /** One upgrade for all of it. Corrected is what the new revision's first look finds in order. */
  #upgrade(tasks: readonly Task[]): void {
    const { session, wantUpgrade, isUpgradeWanted } = this.#subject;
    const nowMs = this.#parts.tools.now();
    const isAsked = isUpgradeWanted();
    for (const { seen, plan } of tasks) {
      const key = objectKey(seen.object.id);
      if (!isAsked) for (const field of plan.now) session.convergence.corrected(key, field, nowMs);
      const message = 'an upgrade of the release is asked for';
      this.#keep(becoming(seen.finding, { action: 'Pending', message, dueAtMs: nowMs + UPGRADE_PAUSE_MS }));
    }
    if (isAsked) return;
    const findings = new Map(tasks.map(({ seen }) => [seen.finding.key, seen.finding]));
    session.upgrading = { revision: (session.mark?.revision ?? 0) + 1, sinceMs: this.#subject.stirredAtMs, findings };
    const [first] = tasks;
    const others = tasks.length - 1;
    const { kind, name } = first?.seen.object.id ?? { kind: '', name: '' };
    wantUpgrade(`objects differ from the release: ${kind} ${name}${others > 0 ? ` and ${others} more` : ''}`);
  }

  async #apply(tasks: readonly Task[]): Promise<void> {
    const { release, session } = this.#subject;
    // Helm is at work: the end of that is an event, and the objects stay due.
    const unlock = this.#parts.locks.tryLock(session.cluster.name, release);
    if (unlock === undefined) return;
    try {
      if (!(await this.#isStillDeployed())) return;
      session.beginCorrecting();
      for (const group of byKind(tasks)) await inParallel(group, async (task) => this.#one(task));
    } finally {
      unlock();
    }
  }

  /** Asked of the server: the watch on Helm's records may be behind the one on objects, and an upgrade that begins must not be undone. */
  async #isStillDeployed(): Promise<boolean> {
    const { reader, release, session, signal, isStillWanted } = this.#subject;
    const newest = await reader.refresh(release, { signal, limitMs: CALL_LIMIT_MS });
    const { mark } = session;
    const isSame = newest?.recordUid === mark?.recordUid && newest?.recordVersion === mark?.recordVersion;
    return isSame && newest?.status === 'deployed' && isStillWanted();
  }

  async #one(task: Task): Promise<void> {
    const { session } = this.#subject;
    let current: Task | undefined = task;
    for (let tries = 1; current !== undefined; tries++) {
      const correction = await this.#try(current);
      if (correction.outcome !== 'conflict') {
        await this.#became(current, correction);
        return;
      }
      const dueAtMs = this.#parts.tools.now() + CONFLICT_PAUSE_MS;
      if (tries >= MAX_TRIES) {
        this.#keep(becoming(current.seen.finding, { action: 'Pending', dueAtMs }));
        return;
      }
      const seen = await this.#verifying.one(current.seen.object, session.cluster.client);
      [current] = seen === undefined ? [] : this.#task(seen);
      // It may have been an upgrade that wrote: what it wrote is not to be undone. Asked after the look, or it would be of no use.
      if (current !== undefined && !(await this.#isStillDeployed())) return;
    }
  }

  async #try({ seen, verdict, plan }: Task): Promise<Correction> {
    const { session, policy, signal } = this.#subject;
    const { name, client } = session.cluster;
    const options = {
      policy: policy.comparison,
      skip: plan.skip,
      signal,
      timeoutMs: CALL_LIMIT_MS,
      onDryRun: () => this.#parts.metrics.dryRun(name),
    };
    const attributes = attributesOf(session, seen.object);
    try {
      return await inSpan(this.#parts.deps.telemetry.tracer, 'drift correct', attributes, async () =>
        this.#parts.tools.correct(client, seen.object, verdict, options),
      );
    } catch (error) {
      if (isLost(error, signal)) throw error;
      return { outcome: 'refused', message: textOf(seen.object, error) };
    }
  }

  async #became({ seen, plan }: Task, correction: Exclude<Correction, { outcome: 'conflict' }>): Promise<void> {
    const { session, news, stirredAtMs } = this.#subject;
    const { finding } = seen;
    const nowMs = this.#parts.tools.now();
    switch (correction.outcome) {
      case 'corrected': {
        for (const field of plan.now) session.convergence.corrected(finding.key, field, nowMs);
        news.corrected(onlyFields(finding, plan.now), nowMs - stirredAtMs);
        await this.#lookAtAnswer(seen, correction);
        return;
      }
      case 'needs-recreation':
        this.#keep(becoming(finding, { action: 'NeedsRecreation', message: correction.message }));
        return;
      case 'refused':
      case 'waiting': {
        const action = correction.outcome === 'refused' ? 'Refused' : 'Waiting';
        const dueAtMs = session.convergence.refused(finding.key, nowMs);
        this.#keep(becoming(finding, { action, message: correction.message, dueAtMs }));
        return;
      }
    }
  }

  /** A webhook may have made something else of it; and what was left out on purpose still differs. Normally no request. */
  async #lookAtAnswer({ object }: Seen, { live }: Extract<Correction, { outcome: 'corrected' }>): Promise<void> {
    const { client } = this.#subject.session.cluster;
    const after = await this.#verifying.one(object, client, live);
    if (after === undefined || (after.verdict.state !== 'Modified' && after.verdict.state !== 'Missing')) return;
    const plan = this.#plan(object, after.verdict);
    if (plan === undefined) this.#keep(becoming(after.finding, { action: 'Reported' }));
    else if (plan.now.length === 0) this.#hold(after.finding, plan);
  }
}

/** The finding as far as these fields go: people are not told of fields that were left as they are. */
function onlyFields(finding: Finding, now: readonly string[]): Finding {
  const { fields } = finding.status;
  if (fields === undefined) return finding;
  return { ...finding, status: { ...finding.status, fields: fields.filter(({ path }) => now.includes(path)) } };
}

/** `/data/mode: corrected 7 times, and changed again by kubectl-edit`. */
function stoppedText(finding: Finding, { field, corrections }: { field: string; corrections: number }): string {
  const own = (finding.status.fields ?? []).find(({ path }) => path === field)?.manager;
  const manager = own ?? managersOf(finding.status)[0];
  const what = field === '' ? 'the object' : field;
  const how = finding.status.state === 'Missing' ? 'deleted' : 'changed';
  return `${what}: corrected ${corrections} times, and ${how} again${manager === undefined ? '' : ` by ${manager}`}`;
}

/** Neighbours of one kind may be put back side by side: Helm's order is one of kinds. */
function byKind(tasks: readonly Task[]): Task[][] {
  const groups: Task[][] = [];
  for (const task of tasks) {
    const last = groups.at(-1);
    if (last?.[0]?.seen.object.id.kind === task.seen.object.id.kind) last.push(task);
    else groups.push([task]);
  }
  return groups;
}
