import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import PQueue from 'p-queue';
import { asError } from '../kube/abort.ts';
import { counter, inSpan } from '../telemetry/index.ts';
import type { Telemetry } from '../telemetry/index.ts';
import { underControl } from './chart-store-flights.ts';
import { HelmError } from './errors.ts';
import type { HelmProcesses } from './process.ts';
import { RenderBatch } from './values-renderer-batch.ts';
import type { RenderLimits, TemplateMemory } from './values-renderer-batch.ts';
import { Expressions, exceedsHelm } from './values-renderer-chart.ts';
import type { OperationControl, TemplateJob, TemplateOutcome, ValuesRenderer } from './types.ts';

export interface ValuesRendererOptions {
  /** Jobs that come within this of the first share a process, milliseconds. */
  readonly windowMs: number;
  /** Jobs per process at most. */
  readonly maxJobs: number;
  /** Bytes of templates and contexts per process, about; a single job may have more. */
  readonly maxBytes: number;
  /** Batches at a time. */
  readonly concurrency: number;
  /** Limit of `render` where the caller names none, milliseconds. */
  readonly limitMs: number;
  readonly limits: RenderLimits;
}

export type GivenValuesRendererOptions = Partial<Omit<ValuesRendererOptions, 'limits'>> & {
  readonly limits?: Partial<RenderLimits>;
};

/** The one place of these defaults. */
export function valuesRendererOptions(given: GivenValuesRendererOptions = {}): ValuesRendererOptions {
  return {
    windowMs: 5,
    maxJobs: 250,
    // Helm holds some 50 bytes for each of a chart: 200 MB at 4 MiB (measured).
    maxBytes: 4 * 1024 ** 2,
    concurrency: 2,
    limitMs: 120_000,
    ...given,
    limits: {
      // 250 jobs take a tenth of a second on an idle core.
      runMs: 10_000,
      memoryBytes: 512 * 1024 ** 2,
      // An object of the API server's, in which the values will lie, has 1.5 MiB at most (etcd's default).
      outputBytes: 3 * 1024 ** 2,
      maxLimitHits: 8,
      ...given.limits,
    },
  };
}

interface Waiting {
  readonly job: TemplateJob;
  readonly size: number;
  readonly signal: AbortSignal;
  readonly resolve: (outcome: TemplateOutcome) => void;
  readonly reject: (error: Error) => void;
}

/** Templates of which something is remembered. */
const MAX_REMEMBERED = 1000;

/**
 * Values templates in Go's own template engine with Sprig: a chart written on the fly calls Helm's `tpl` for many jobs in
 * one `helm template` process, which has a private directory, a bare environment, no cluster, and limits of time, memory
 * and output. One job that fails fails alone.
 *
 * Against CAAPH (text/template with Sprig's functions), in Helm's engine
 * - what is missing renders as nothing instead of `<no value>`; the text `<no value>` itself vanishes likewise; a field
 *   of a null (not only of something missing) is nothing too, where a template reads both (see makeLenient);
 * - Helm's own functions are there too (toYaml, required, include, tpl …), `lookup` finds nothing;
 * - `env` and `expandenv` are unknown as in CAAPH; `getHostByName` is known and gives ''; `fromJson` gives a map, as
 *   Helm's does (`mustFromJson` anything);
 * - an error raised by `fail` or `required` has no line.
 * `.Values`, `.Release`, `.Files` and the other objects of a chart are not visible.
 */
export class HelmValuesRenderer implements ValuesRenderer {
  readonly #processes: Pick<HelmProcesses, 'run'>;
  readonly #options: ValuesRendererOptions;
  readonly #telemetry: Telemetry;
  readonly #queue: PQueue;
  /** Digests of templates that ran into a limit: they no longer share a process with others. */
  readonly #suspects = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  /** Digests of templates that are rewritten from the start. */
  readonly #lenient = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  readonly #memory: TemplateMemory = {
    suspect: (template) => this.#suspects.set(digestOf(template), true),
    needsLenient: (template) => this.#lenient.set(digestOf(template), true),
    isLenient: (template) => this.#lenient.get(digestOf(template)) === true,
  };
  readonly #closing = new AbortController();
  readonly #count: (result: 'success' | 'error', jobs: number) => void;
  #waiting: Waiting[] = [];
  #waitingBytes = 0;
  #expressions = new Expressions();
  #timer: NodeJS.Timeout | undefined;

  constructor(processes: Pick<HelmProcesses, 'run'>, given: GivenValuesRendererOptions, telemetry: Telemetry) {
    this.#processes = processes;
    this.#options = valuesRendererOptions(given);
    this.#telemetry = telemetry;
    this.#queue = new PQueue({ concurrency: this.#options.concurrency });
    const name = 'capstan_values_renders_total';
    const renders = counter(telemetry.metrics, name, 'Values templates rendered, per cluster and chart', ['result']);
    this.#count = (result, jobs) => {
      renders.inc({ result }, jobs);
    };
  }

  /**
   * As the contract says. Resolves with `ok: false` when the template or its context is at fault; rejects with HelmError
   * (Cancelled, Timeout, HelmMissing, Failed) when the rendering could not be done.
   */
  async render(job: TemplateJob, control: OperationControl): Promise<TemplateOutcome> {
    // Nothing to be rendered: no process for it.
    if (!job.template.includes('{{')) return { id: job.id, ok: true, text: job.template };
    // The batch that renders it is in the trace of whoever filled it; so is the wait for it here.
    return inSpan(this.#telemetry.tracer, 'values.render', {}, async () => this.#render(job, control));
  }

  async #render(job: TemplateJob, control: OperationControl): Promise<TemplateOutcome> {
    return underControl(control, this.#options.limitMs, async (signal) => {
      if (this.#closing.signal.aborted) throw closing();
      if (exceedsHelm(job, this.#expressions)) return tooLarge(job);
      return new Promise<TemplateOutcome>((resolve, reject) => {
        this.#enqueue({ job, signal, resolve, reject, size: this.#expressions.size(job) });
      });
    });
  }

  /** Ends what is under way; everything asked for rejects with Cancelled. */
  async close(): Promise<void> {
    this.#closing.abort(closing());
    clearTimeout(this.#timer);
    for (const { reject } of this.#waiting.splice(0)) reject(closing());
    await this.#queue.onIdle();
  }

  #enqueue(waiting: Waiting): void {
    const { maxBytes, maxJobs, windowMs } = this.#options;
    if (this.#waiting.length > 0 && this.#waitingBytes + waiting.size > maxBytes) this.#flush();
    this.#waiting.push(waiting);
    this.#waitingBytes += waiting.size;
    if (this.#waiting.length >= maxJobs) this.#flush();
    else {
      this.#timer ??= setTimeout(() => {
        this.#flush();
      }, windowMs);
    }
  }

  #flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const expressions = this.#expressions;
    this.#expressions = new Expressions();
    this.#waitingBytes = 0;
    for (const batch of this.#separate(this.#waiting.splice(0))) {
      this.#queue
        .add(async () => this.#runBatch(batch, expressions))
        .catch((error: unknown) => {
          for (const { reject } of batch) reject(asError(error));
        });
    }
  }

  /** Suspects by themselves, one batch per template; all the others together. */
  #separate(waiting: readonly Waiting[]): Waiting[][] {
    const groups = Map.groupBy(waiting, ({ job }) => {
      const digest = digestOf(job.template);
      return this.#suspects.get(digest) === true ? digest : '';
    });
    return [...groups.values()];
  }

  async #runBatch(batch: readonly Waiting[], expressions: Expressions): Promise<void> {
    const wanted = batch.filter(({ signal }) => !signal.aborted);
    if (wanted.length === 0) return;
    const interest = new Interest(wanted, this.#closing.signal);
    try {
      await inSpan(
        this.#telemetry.tracer,
        'values.render batch',
        { 'capstan.values.jobs': wanted.length },
        async (span) => {
          const run = new RenderBatch(this.#processes, this.#options.limits, {
            expressions,
            signal: interest.signal,
            memory: this.#memory,
          });
          const jobs = wanted.map(({ job }) => job);
          await run.render(jobs, (index, outcome) => {
            this.#count(outcome.ok ? 'success' : 'error', 1);
            wanted[index]?.resolve(outcome);
          });
          span.setAttribute('capstan.values.processes', run.processes);
        },
      );
    } finally {
      interest.end();
    }
  }
}

/** Aborts when nobody waits for a batch any more, or when the renderer closes. */
class Interest {
  readonly #controller = new AbortController();
  readonly #ends: (() => void)[] = [];

  constructor(waiting: readonly Waiting[], closed: AbortSignal) {
    let left = waiting.length;
    const leave = (): void => {
      left -= 1;
      if (left === 0) this.#controller.abort(new HelmError('Cancelled', 'nobody waits for these values any more'));
    };
    const close = (): void => {
      this.#controller.abort(closed.reason);
    };
    for (const { signal } of waiting) this.#listen(signal, leave);
    this.#listen(closed, close);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  end(): void {
    for (const end of this.#ends) end();
  }

  #listen(signal: AbortSignal, listener: () => void): void {
    if (signal.aborted) listener();
    signal.addEventListener('abort', listener, { once: true });
    this.#ends.push(() => {
      signal.removeEventListener('abort', listener);
    });
  }
}

function digestOf(template: string): string {
  return createHash('sha256').update(template).digest('base64');
}

function closing(): HelmError {
  return new HelmError('Cancelled', 'the values renderer is closing');
}

function tooLarge(job: TemplateJob): TemplateOutcome {
  return {
    id: job.id,
    ok: false,
    error: `template: ${job.id}: the template or an object that it reads is too large to be rendered`,
  };
}
