import { HelmError } from './errors.ts';
import type { HelmExit, HelmProcesses } from './process.ts';
import { isAboutMissing, nameTemplate, readFailure } from './values-renderer-errors.ts';
import type { RenderFailure } from './values-renderer-errors.ts';
import { writeChart } from './values-renderer-chart.ts';
import type { Expressions, RenderChart } from './values-renderer-chart.ts';
import { makeLenient } from './values-renderer-lenient.ts';
import type { LenientTemplate } from './values-renderer-lenient.ts';
import type { TemplateJob, TemplateOutcome } from './types.ts';

/** Of one helm process, unless said otherwise. */
export interface RenderLimits {
  /** Milliseconds. */
  readonly runMs: number;
  /** Bytes. */
  readonly memoryBytes: number;
  /** Bytes of the values of one job. */
  readonly outputBytes: number;
  /** How often one batch may run into a limit before what is left of it is given up. */
  readonly maxLimitHits: number;
}

/** What is remembered of templates from one batch to the next. */
export interface TemplateMemory {
  /** It ran into a limit. */
  suspect(template: string): void;
  /** It reads what may be missing, in a way that Helm alone refuses. */
  needsLenient(template: string): void;
  isLenient(template: string): boolean;
}

/** A job and its place in the batch. */
interface Placed {
  readonly index: number;
  readonly job: TemplateJob;
}

type Deliver = (index: number, outcome: TemplateOutcome) => void;

/** How a process went: all rendered; one job at fault, named by Helm or not; or ended at a limit that does not tell whose it was. */
type Verdict =
  | { readonly kind: 'rendered'; readonly texts: readonly string[] }
  | { readonly kind: 'failed'; readonly failure: RenderFailure; readonly chart: RenderChart }
  | { readonly kind: 'limit'; readonly why: string };

/** One or two clusters whose template fails are common; more mean that it is the template. */
const HALVE_AFTER = 3;

/** Base64, and a line around it. */
const OUTPUT_GROWTH = 1.5;
/** So many jobs of one process may have values of the largest size. */
const FULL_OUTPUTS = 8;
/** Standard output beyond what the jobs' values can be, bytes. */
const OUTPUT_MARGIN = 1024 * 1024;

/**
 * Renders jobs in as few processes as it takes. Helm stops at the first error, which names one job: that job is taken
 * out and the others are rendered again, those of other templates first. Where no job is named, the batch is cut: by
 * template, then in halves.
 */
export class RenderBatch {
  /** Processes run so far. */
  processes = 0;
  readonly #processes: Pick<HelmProcesses, 'run'>;
  readonly #limits: RenderLimits;
  readonly #context: {
    readonly expressions: Expressions;
    readonly signal: AbortSignal;
    readonly memory: TemplateMemory;
  };
  /** Templates that are rendered rewritten. */
  readonly #lenient = new Map<string, LenientTemplate>();
  /** Contexts in which a template failed. */
  readonly #failures = new Map<string, number>();
  #limitHits = 0;

  constructor(
    processes: Pick<HelmProcesses, 'run'>,
    limits: RenderLimits,
    context: { expressions: Expressions; signal: AbortSignal; memory: TemplateMemory },
  ) {
    this.#processes = processes;
    this.#limits = limits;
    this.#context = context;
  }

  /** Delivers one outcome per job, each as soon as it is known. Rejects with HelmError when the rest cannot be rendered. */
  async render(jobs: readonly TemplateJob[], deliver: Deliver): Promise<void> {
    for (const { template } of jobs) if (this.#context.memory.isLenient(template)) this.#rewrite(template);
    const stack: (readonly Placed[])[] = [jobs.map((job, index) => ({ index, job }))];
    for (let group = stack.pop(); group !== undefined; group = stack.pop()) {
      if (group.length > 0) stack.push(...(await this.#renderGroup(group, deliver)));
    }
  }

  /** Returns the groups that are still to be rendered, the first to come last. */
  async #renderGroup(group: readonly Placed[], deliver: Deliver): Promise<(readonly Placed[])[]> {
    if (this.#limitHits >= this.#limits.maxLimitHits && group.length > 1) {
      fail(group, deliver, () => 'it is given up: too many of the jobs rendered with it ran into a limit');
      return [];
    }
    const verdict = await this.#run(group.map(({ job }) => job));
    switch (verdict.kind) {
      case 'rendered':
        group.forEach(({ index, job }, place) => {
          deliver(index, { id: job.id, ok: true, text: verdict.texts[place] ?? '' });
        });
        return [];
      case 'failed':
        return this.#failed(group, verdict, deliver);
      case 'limit':
        return this.#limited(group, verdict.why, deliver);
    }
  }

  #failed(
    group: readonly Placed[],
    { failure, chart }: Extract<Verdict, { kind: 'failed' }>,
    deliver: Deliver,
  ): (readonly Placed[])[] {
    const culprit = failure.job === undefined ? undefined : group[failure.job];
    if (culprit === undefined) return this.#cut(group, deliver, (job) => nameTemplate(failure.words, job.id));
    const { template } = culprit.job;
    if (isAboutMissing(failure) && this.#rewrite(template)) {
      this.#context.memory.needsLenient(template);
      return [group];
    }
    const alike = group.filter(({ job }) => job.template === template);
    const others = group.filter(({ job }) => job.template !== template);
    const guilty = failure.kind === 'parse' ? alike : [culprit];
    fail(guilty, deliver, (job) => this.#words(failure, chart, job));
    const rest = alike.filter((placed) => !guilty.includes(placed));
    return [...this.#halve(template, rest), others];
  }

  /** Where one template fails in many contexts, small groups cost less to render again and again than a large one. */
  #halve(template: string, rest: readonly Placed[]): (readonly Placed[])[] {
    const failures = (this.#failures.get(template) ?? 0) + 1;
    this.#failures.set(template, failures);
    if (failures < HALVE_AFTER) return [rest];
    const middle = Math.ceil(rest.length / 2);
    return [rest.slice(middle), rest.slice(0, middle)];
  }

  #words(failure: RenderFailure, chart: RenderChart, job: TemplateJob): string {
    if (failure.words.includes(chart.tooLarge)) {
      return `template: ${job.id}: the rendered values are larger than ${this.#limits.outputBytes} bytes`;
    }
    const lenient = this.#lenient.get(job.template);
    return nameTemplate(lenient === undefined ? failure.words : lenient.restore(failure.words), job.id);
  }

  /** False when it is rewritten already, or cannot be. */
  #rewrite(template: string): boolean {
    if (this.#lenient.has(template)) return false;
    const lenient = makeLenient(template);
    if (lenient !== undefined) this.#lenient.set(template, lenient);
    return lenient !== undefined;
  }

  #limited(group: readonly Placed[], why: string, deliver: Deliver): (readonly Placed[])[] {
    this.#limitHits += 1;
    const templates = new Set(group.map(({ job }) => job.template));
    if (templates.size === 1) for (const template of templates) this.#context.memory.suspect(template);
    return this.#cut(group, deliver, (job) => `template: ${job.id}: ${why}`);
  }

  /** One job by itself fails; more are cut by template, or in halves when they have the same. */
  #cut(group: readonly Placed[], deliver: Deliver, words: (job: TemplateJob) => string): (readonly Placed[])[] {
    if (group.length === 1) {
      fail(group, deliver, words);
      return [];
    }
    const byTemplate = [...Map.groupBy(group, ({ job }) => job.template).values()];
    if (byTemplate.length > 1) return byTemplate;
    const middle = Math.ceil(group.length / 2);
    return [group.slice(middle), group.slice(0, middle)];
  }

  async #run(jobs: readonly TemplateJob[]): Promise<Verdict> {
    const { expressions, signal } = this.#context;
    const { runMs, memoryBytes, outputBytes } = this.#limits;
    const written = jobs.map((job) => ({ ...job, template: this.#lenient.get(job.template)?.text ?? job.template }));
    const chart = writeChart(written, expressions, outputBytes);
    this.processes += 1;
    const exit = await this.#processes.run({
      operation: 'template',
      args: chart.args,
      files: chart.files,
      limitMs: runMs,
      memoryLimit: memoryBytes,
      wholeOutput: outputBytes * OUTPUT_GROWTH * Math.min(jobs.length, FULL_OUTPUTS) + OUTPUT_MARGIN,
      // It writes nothing that would have to be tidied up.
      graceMs: 0,
      signal,
    });
    return this.#judge(exit, chart);
  }

  #judge(exit: HelmExit, chart: RenderChart): Verdict {
    switch (exit.end) {
      case 'exited':
        return exit.code === 0
          ? read(exit, chart)
          : { kind: 'failed', failure: readFailure(exit.stderr, chart), chart };
      case 'limit':
        return { kind: 'limit', why: `rendering takes longer than ${this.#limits.runMs / 1000} s` };
      case 'killed':
        return {
          kind: 'limit',
          why: `rendering needs more than ${this.#limits.memoryBytes / 1024 ** 2} MiB of memory`,
        };
      case 'overflow':
        return { kind: 'limit', why: `the rendered values are larger than ${this.#limits.outputBytes} bytes` };
      case 'aborted':
        this.#context.signal.throwIfAborted();
        throw new HelmError('Cancelled', 'the rendering was broken off');
    }
  }
}

function read(exit: HelmExit, chart: RenderChart): Verdict {
  const texts = chart.read(exit.stdout);
  if (texts.every((text) => text !== undefined)) return { kind: 'rendered', texts };
  throw new HelmError('Failed', 'helm template did not give what its chart says');
}

function fail(group: readonly Placed[], deliver: Deliver, words: (job: TemplateJob) => string): void {
  for (const { index, job } of group) deliver(index, { id: job.id, ok: false, error: words(job) });
}
