/** Tells people of drift, once per change: log, Events and metrics. Names objects, fields and managers, never values. */
import type { DriftObjectStatus, HelmReleaseProxy } from '../../api/index.ts';
import type { Logger } from '../../telemetry/index.ts';
import { nameList } from '../conditions.ts';
import { managersOf, objectText, signatureOf } from './finding.ts';
import type { Finding } from './finding.ts';
import type { DriftParts } from './parts.ts';
import type { DriftSession } from './session.ts';

/** So many objects of one pass get an Event each; more are one Event: an object's Events are limited, and nobody reads fifty. */
const MAX_SINGLE_EVENTS = 3;
/** Fields of an object named in an Event. */
const MAX_FIELDS = 3;

type Subject = Pick<DriftObjectStatus, 'kind' | 'namespace' | 'name'>;

/** What one pass has to tell. */
export class DriftNews {
  readonly #parts: DriftParts;
  readonly #session: DriftSession;
  readonly #proxy: HelmReleaseProxy;
  readonly #log: Logger;
  #detected: DriftObjectStatus[] = [];
  #corrected: DriftObjectStatus[] = [];
  #failed: DriftObjectStatus[] = [];
  #stopped: DriftObjectStatus[] = [];

  constructor(parts: DriftParts, of: { session: DriftSession; proxy: HelmReleaseProxy; log: Logger }) {
    this.#parts = parts;
    this.#session = of.session;
    this.#proxy = of.proxy;
    const { namespace = '', releaseName = '' } = of.proxy.spec;
    this.#log = of.log.with({ release: `${namespace}/${releaseName}` });
  }

  /** An object differs. Objects that are just going are told of when they are gone. */
  found({ key, status }: Finding): void {
    const signature = signatureOf(status);
    if (status.state === 'Terminating' || this.#session.told.get(key) === signature) return;
    this.#session.told.set(key, signature);
    this.#session.toldAction.delete(key);
    this.#session.lastDetectedTime = timeText(this.#parts.tools.now());
    this.#parts.metrics.detected(this.#session.cluster.name);
    this.#detected.push(status);
    this.#log.warn('drift detected', { ...fieldsOf(status), state: status.state });
  }

  /** The object is as it should be. */
  settled(key: string): void {
    this.#session.told.delete(key);
    this.#session.toldAction.delete(key);
  }

  /** The server took a correction. If the object differs after it all the same, that is told anew. */
  corrected({ key, status }: Finding, ms: number): void {
    this.settled(key);
    this.#session.noteCorrected(status, timeText(this.#parts.tools.now()));
    this.#parts.metrics.corrected(this.#session.cluster.name, ms);
    this.#corrected.push(status);
    this.#log.info('drift corrected', { ...fieldsOf(status), ms });
  }

  /** What became of a finding that was not corrected. */
  became({ key, status }: Finding): void {
    if (this.#session.toldAction.get(key) === status.action) return;
    this.#session.toldAction.set(key, status.action);
    const list = LISTS[status.action];
    if (list === undefined) return;
    if (list === 'stopped') this.#stopped.push(status);
    else this.#failed.push(status);
    const { action, message } = status;
    this.#log.warn('drift is not corrected', { ...fieldsOf(status), action, why: message });
  }

  /** For the log, once per revision. */
  notes(key: string, subject: Subject, notes: readonly string[]): void {
    for (const note of notes) {
      const text = `${key} ${note}`;
      if (this.#session.noted.has(text) || this.#session.noted.size >= MAX_NOTES) continue;
      this.#session.noted.add(text);
      this.#log.info('a note on an object of the release', { object: nameOf(subject), note });
    }
  }

  /** Events of what was told since the last call: detected ones before corrected ones. */
  flush(): void {
    this.#say('Warning', 'DriftDetected', 'differs from the chart', this.#detected);
    this.#say('Normal', 'DriftCorrected', 'put back', this.#corrected);
    this.#say('Warning', 'DriftCorrectionFailed', 'could not be put back', this.#failed);
    this.#say('Warning', 'DriftNotConverging', 'does not stay as it is put back', this.#stopped);
    this.#detected = [];
    this.#corrected = [];
    this.#failed = [];
    this.#stopped = [];
  }

  #say(type: 'Normal' | 'Warning', reason: string, what: string, list: readonly DriftObjectStatus[]): void {
    const record = (message: string): void => this.#parts.deps.events.record(this.#proxy, { type, reason, message });
    if (list.length > MAX_SINGLE_EVENTS) {
      record(`${list.length} objects: ${what}: ${nameList(list.map(nameOf))}`);
      return;
    }
    for (const status of list) {
      const why = status.message === undefined ? '' : `: ${status.message}`;
      record(`${objectText(status, MAX_FIELDS)}: ${what}${why}`);
    }
  }
}

/** Notes remembered of one release. */
const MAX_NOTES = 100;

const LISTS: Readonly<Partial<Record<string, 'failed' | 'stopped'>>> = {
  Refused: 'failed',
  NeedsRecreation: 'failed',
  Stopped: 'stopped',
};

/** RFC 3339, whole seconds. */
export function timeText(ms: number): string {
  return `${new Date(ms).toISOString().slice(0, 19)}Z`;
}

function fieldsOf(status: DriftObjectStatus): Record<string, unknown> {
  const paths = (status.fields ?? []).map(({ path, change }) => `${path} ${change}`);
  const managers = managersOf(status);
  return {
    object: nameOf(status),
    ...(paths.length > 0 && { paths }),
    ...(managers.length > 0 && { managers }),
  };
}

function nameOf({ kind, namespace, name }: Subject): string {
  return `${kind} ${namespace === undefined ? '' : `${namespace}/`}${name}`;
}
