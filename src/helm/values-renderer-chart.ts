import { randomBytes } from 'node:crypto';
import { goString, goValue } from './values-renderer-literal.ts';
import type { TemplateJob } from './types.ts';

/** Helm refuses a chart's file that is larger, bytes. */
const MAX_FILE_BYTES = 5 * 1024 * 1024;

const CHART = 'capstan';

/** A chart that renders jobs, and how to read what comes of it. Jobs are known by their place in the list. */
export interface RenderChart {
  /** By path, relative to the working directory. */
  readonly files: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  /** In no name that a template could guess: templates of one chart see one another. */
  readonly token: string;
  /** What a template of ours says when the values of a job are too large. */
  readonly tooLarge: string;
  /** The job of a file that an error names first. */
  jobOf(stderr: string): number | undefined;
  /** The rendered text of each job, in their order; undefined where one is missing. */
  read(stdout: string): (string | undefined)[];
}

/** Text that goes into a chart once, however many jobs use it. */
class Shared {
  readonly #prefix: string;
  readonly #names = new Map<string, string>();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** The name of a Go expression. */
  name(expression: string): string {
    const known = this.#names.get(expression);
    if (known !== undefined) return known;
    const name = `${this.#prefix}${this.#names.size}`;
    this.#names.set(expression, name);
    return name;
  }

  /** A partial for each, that sets it in .Values unless it is there. Rendering order does not matter then. */
  files(): Record<string, string> {
    const files: Record<string, string> = {};
    for (const [expression, name] of this.#names) {
      const set = `{{- if not (hasKey .Values "${name}") -}}{{- $_ := set .Values "${name}" ${expression} -}}{{- end -}}`;
      files[`templates/_${name}.tpl`] = `{{- define "${name}" -}}${set}{{- end -}}`;
    }
    return files;
  }
}

/** Objects as Go expressions, each made once per batch: the same Cluster stands in many contexts. */
export class Expressions {
  readonly #made = new WeakMap<object, string>();

  of(value: unknown): string {
    if (typeof value !== 'object' || value === null) return goValue(value);
    const known = this.#made.get(value);
    if (known !== undefined) return known;
    const made = goValue(value);
    this.#made.set(value, made);
    return made;
  }

  /** Bytes, about, that a job adds to a chart. */
  size(job: TemplateJob): number {
    let size = job.template.length;
    for (const value of Object.values(job.context)) size += this.of(value).length;
    return size;
  }
}

/** True when Helm would not read the job's file. */
export function exceedsHelm(job: TemplateJob, expressions: Expressions): boolean {
  const parts = Object.values(job.context).map((value) => expressions.of(value));
  return [goString(job.template), ...parts].some((part) => Buffer.byteLength(part) > MAX_FILE_BYTES - 4096);
}

/**
 * Writes the chart. Each job is one template file, so that an error tells whose it is; its output is one line of base64,
 * so that any text comes back as it was. A job's context is a copy: `set` in one template changes nothing for another.
 */
export function writeChart(jobs: readonly TemplateJob[], expressions: Expressions, maxOutput: number): RenderChart {
  const token = `x${randomBytes(12).toString('hex')}`;
  const shared = new Shared(`${token}s`);
  const tooLarge = `${token}-too-large`;
  const files: Record<string, string> = {};
  const users = new Map<string, number[]>();
  const parts = jobs.map((job, index): JobParts => {
    const use = (expression: string): string => {
      const name = shared.name(expression);
      const known = users.get(name);
      if (known === undefined) users.set(name, [index]);
      else known.push(index);
      return name;
    };
    return {
      template: use(goString(job.template)),
      context: Object.entries(job.context).map(([name, value]) => [name, use(expressions.of(value))] as const),
    };
  });
  const limit = `{{- if gt (len $o) ${maxOutput} -}}{{- fail "${tooLarge}" -}}{{- end -}}`;
  parts.forEach((part, index) => {
    const line = `${token}-${index}`;
    files[`templates/${line}.yaml`] = jobFile(part, { line, limit, isShared: (name) => users.get(name)?.length !== 1 });
  });
  const all = { 'Chart.yaml': `apiVersion: v2\nname: ${CHART}\nversion: 0.0.0\n`, ...files, ...shared.files() };
  return {
    files: Object.fromEntries(Object.entries(all).map(([path, text]) => [`chart/${path}`, text])),
    args: ['template', CHART, './chart'],
    token,
    tooLarge,
    jobOf: (stderr) => jobOf(stderr, token, users),
    read: (stdout) => readOutput(stdout, token, jobs.length),
  };
}

/** A job by the names of its parts in .Values. */
interface JobParts {
  readonly template: string;
  readonly context: readonly (readonly [string, string])[];
}

/** Values are variables, not literals in the call: Go's errors quote the call. */
function jobFile(
  { template, context }: JobParts,
  around: { readonly line: string; readonly limit: string; readonly isShared: (name: string) => boolean },
): string {
  const includes = [template, ...context.map(([, name]) => name)].map((name) => `{{- include "${name}" . -}}`).join('');
  const members = context.map(([name, from]) => {
    const value = `(index .Values "${from}")`;
    // In a map, because deepCopy does not take nil. Copies are half of the cost of a large context.
    return `${goString(name)} ${around.isShared(from) ? `(deepCopy (dict "v" ${value})).v` : value}`;
  });
  return [
    includes,
    `{{- $c := dict ${members.join(' ')} -}}`,
    `{{- $t := index .Values "${template}" -}}`,
    `{{- $o := tpl $t $c -}}`,
    around.limit,
    `\n${around.line}: "{{ $o | b64enc }}"\n`,
  ].join('');
}

function jobOf(stderr: string, token: string, users: ReadonlyMap<string, readonly number[]>): number | undefined {
  const match = new RegExp(`templates/(?:_(${token}s\\d+)\\.tpl|${token}-(\\d+)\\.yaml)`).exec(stderr);
  if (match === null) return undefined;
  return match[2] === undefined ? users.get(match[1] ?? '')?.[0] : Number(match[2]);
}

function readOutput(stdout: string, token: string, count: number): (string | undefined)[] {
  const texts = new Array<string | undefined>(count).fill(undefined);
  for (const match of stdout.matchAll(new RegExp(`^${token}-(\\d+): "([A-Za-z0-9+/=]*)"\\s*$`, 'gm'))) {
    texts[Number(match[1])] = Buffer.from(match[2] ?? '', 'base64').toString('utf8');
  }
  return texts;
}
