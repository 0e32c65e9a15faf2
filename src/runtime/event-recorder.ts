import { randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { Counter } from 'prom-client';
import { isKubeError, KubeError } from '../kube/index.ts';
import type { KubeClient, KubeObject, Resource } from '../kube/index.ts';
import { counter } from '../telemetry/index.ts';
import type { Logger, Telemetry } from '../telemetry/index.ts';
import { pause } from './abort.ts';
import type { EventRecorder, Runnable } from './types.ts';

export interface EventRecorderOptions {
  readonly client: KubeClient;
  readonly telemetry: Telemetry;
  /** Who reports, e.g. the program's name. */
  readonly component: string;
  /** Which instance, e.g. the pod's name. */
  readonly instance?: string;
}

type About = Parameters<EventRecorder['record']>[0];
type Fact = Parameters<EventRecorder['record']>[1];

/** core/v1 Event: what kubectl describe shows of an object. */
interface CoreEvent extends KubeObject {
  involvedObject: { apiVersion: string; kind: string; name: string; namespace?: string; uid?: string };
  reason: string;
  message: string;
  type: string;
  action?: string;
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
  source: { component: string };
  reportingComponent: string;
  reportingInstance: string;
}

/** Not written yet; the same again only counts. */
interface Pending {
  readonly key: string;
  readonly about: About;
  readonly fact: Fact;
  count: number;
  readonly firstAt: Date;
  lastAt: Date;
}

interface Written {
  readonly namespace: string;
  readonly name: string;
  count: number;
}

const EVENTS: Resource = { group: '', version: 'v1', plural: 'events', namespaced: true };
/** The API refuses longer ones (validation of core/v1 Event). */
const MAX_MESSAGE_BYTES = 1_024;
/** The object's name, a dot and 16 digits fit into a name of 253 characters. */
const MAX_NAME_PREFIX = 236;
const MAX_PENDING = 1_000;
/** Objects and events remembered, for counting and for the rate. */
const MAX_REMEMBERED = 4_096;
/** The same fact within this time raises the count of the Event written before (client-go's aggregation interval). */
const SAME_WITHIN_MS = 600_000;
/** Per object: so many at once, then one in five minutes (client-go's spam filter). */
const BURST = 25;
const REFILL_MS = 300_000;
const WRITE_LIMIT_MS = 5_000;
const TRIES = 3;
const BETWEEN_TRIES_MS = 1_000;
/** On stop, what waits is still written, for so long. */
const DRAIN_MS = 5_000;

/**
 * Writes Kubernetes Events in the background, one at a time. Equal facts are counted, a chatty object is held back, and
 * what does not fit is dropped and counted (`capstan_events_dropped_total`): Events inform, they never hold up work.
 */
export class KubeEventRecorder implements EventRecorder, Runnable {
  readonly name = 'event recorder';
  readonly #options: EventRecorderOptions;
  readonly #log: Logger;
  readonly #dropped: Counter<'cause'>;
  readonly #pending = new Map<string, Pending>();
  readonly #written = new LRUCache<string, Written>({ max: MAX_REMEMBERED, ttl: SAME_WITHIN_MS });
  readonly #buckets = new LRUCache<string, { tokens: number; at: number }>({ max: MAX_REMEMBERED });
  #wake: (() => void) | undefined;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#log = options.telemetry.log;
    this.#dropped = counter(options.telemetry.metrics, 'capstan_events_dropped_total', 'Events not written', ['cause']);
  }

  record(about: About, fact: Fact): void {
    const message = cutToBytes(fact.message, MAX_MESSAGE_BYTES);
    const objectKey = JSON.stringify([about.apiVersion, about.kind, about.metadata.namespace, about.metadata.name]);
    const key = JSON.stringify([objectKey, about.metadata.uid, fact.type, fact.reason, fact.action, message]);
    const now = new Date();
    const known = this.#pending.get(key);
    if (known !== undefined) {
      known.count += 1;
      known.lastAt = now;
    } else if (this.#pending.size >= MAX_PENDING) this.#drop('full', objectKey);
    else if (!this.#takeToken(objectKey)) this.#drop('rate', objectKey);
    else {
      this.#pending.set(key, { key, about, fact: { ...fact, message }, count: 1, firstAt: now, lastAt: now });
      this.#wake?.();
    }
  }

  /** Resolves after `signal` aborted and what was recorded until then is written, or its time is over. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#writeAll(signal);
      await this.#somethingToDo(signal);
    }
    await this.#writeAll(AbortSignal.timeout(DRAIN_MS));
  }

  async #somethingToDo(signal: AbortSignal): Promise<void> {
    if (this.#pending.size > 0 || signal.aborted) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        signal.removeEventListener('abort', done);
        this.#wake = undefined;
        resolve();
      };
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }

  async #writeAll(signal: AbortSignal): Promise<void> {
    for (const pending of this.#pending.values()) {
      if (signal.aborted) return;
      this.#pending.delete(pending.key);
      await this.#write(pending, signal);
    }
  }

  async #write(pending: Pending, signal: AbortSignal): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#send(pending, signal);
        return;
      } catch (err) {
        const again = err instanceof KubeError && err.handling === 'retry' && attempt < TRIES && !signal.aborted;
        if (!again) {
          this.#dropped.inc({ cause: 'error' });
          this.#log.warn('an event could not be written', { reason: pending.fact.reason, err });
          return;
        }
        await pause(BETWEEN_TRIES_MS, signal);
      }
    }
  }

  async #send(pending: Pending, signal: AbortSignal): Promise<void> {
    const before = this.#written.get(pending.key);
    if (before !== undefined && (await this.#countUp(before, pending, signal))) return;
    const { metadata } = pending.about;
    const namespace = metadata.namespace ?? 'default';
    const name = `${metadata.name.slice(0, MAX_NAME_PREFIX)}.${randomBytes(8).toString('hex')}`;
    const options = { signal, timeoutMs: WRITE_LIMIT_MS };
    await this.#options.client.create<CoreEvent>(EVENTS, this.#event(pending, namespace, name), options);
    this.#written.set(pending.key, { namespace, name, count: pending.count });
  }

  /** False when the Event written before is gone: they live for an hour. */
  async #countUp(before: Written, pending: Pending, signal: AbortSignal): Promise<boolean> {
    const count = before.count + pending.count;
    const body = { count, lastTimestamp: seconds(pending.lastAt) };
    try {
      await this.#options.client.patch(EVENTS, before, { type: 'merge', body }, { signal, timeoutMs: WRITE_LIMIT_MS });
    } catch (error) {
      if (!isKubeError(error, 'NotFound')) throw error;
      return false;
    }
    this.#written.set(pending.key, { ...before, count });
    return true;
  }

  #event({ about, fact, ...times }: Pending, namespace: string, name: string): CoreEvent {
    const { component, instance = component } = this.#options;
    const { metadata } = about;
    return {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace, name },
      involvedObject: {
        apiVersion: about.apiVersion,
        kind: about.kind,
        name: metadata.name,
        ...(metadata.namespace === undefined ? {} : { namespace: metadata.namespace }),
        ...(metadata.uid === undefined ? {} : { uid: metadata.uid }),
      },
      reason: fact.reason,
      message: fact.message,
      type: fact.type,
      ...(fact.action === undefined ? {} : { action: fact.action }),
      count: times.count,
      firstTimestamp: seconds(times.firstAt),
      lastTimestamp: seconds(times.lastAt),
      source: { component },
      reportingComponent: component,
      reportingInstance: instance,
    };
  }

  #takeToken(objectKey: string): boolean {
    const now = performance.now();
    const bucket = this.#buckets.get(objectKey) ?? { tokens: BURST, at: now };
    const tokens = Math.min(BURST, bucket.tokens + (now - bucket.at) / REFILL_MS);
    this.#buckets.set(objectKey, { tokens: tokens < 1 ? tokens : tokens - 1, at: now });
    return tokens >= 1;
  }

  #drop(cause: 'full' | 'rate', object: string): void {
    this.#dropped.inc({ cause });
    this.#log.debug('an event is dropped', { cause, object });
  }
}

/** Without cutting a character in two. */
function cutToBytes(text: string, max: number): string {
  const bytes = Buffer.from(text);
  if (bytes.length <= max) return text;
  const cut = new TextDecoder().decode(bytes.subarray(0, max - 3), { stream: true });
  return `${cut}…`;
}

/** metav1.Time has no fractions. */
function seconds(date: Date): string {
  return date.toISOString().replace(/\.\d+Z$/, 'Z');
}
