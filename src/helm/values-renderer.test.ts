import { afterEach, describe, expect, it, vi } from 'vitest';
import { createTelemetry } from '../telemetry/index.ts';
import type { HelmExit, HelmRun } from './process.ts';
import { HelmValuesRenderer } from './values-renderer.ts';
import type { GivenValuesRendererOptions } from './values-renderer.ts';
import type { TemplateJob, TemplateOutcome } from './types.ts';

/** The jobs of a run, as the chart that was written has them. */
interface RunJobs {
  readonly token: string;
  /** By their place: the template. */
  readonly templates: readonly string[];
}

type Helm = (jobs: RunJobs, run: HelmRun) => Partial<HelmExit> | Promise<Partial<HelmExit>>;

const renderers: HelmValuesRenderer[] = [];
const control = { signal: new AbortController().signal };

afterEach(async () => {
  await Promise.all(renderers.splice(0).map(async (renderer) => renderer.close()));
});

/** A renderer over something that answers as helm would. `runs` are the templates of each process. */
function rendererOver(helm: Helm, options: GivenValuesRendererOptions = {}) {
  const runs: (readonly string[])[] = [];
  const run = vi.fn(async (wanted: HelmRun): Promise<HelmExit> => {
    const jobs = readChart(wanted);
    runs.push(jobs.templates);
    return { end: 'exited', code: 0, stdout: '', stderr: '', tookMs: 1, ...(await helm(jobs, wanted)) };
  });
  const renderer = new HelmValuesRenderer({ run }, options, createTelemetry());
  renderers.push(renderer);
  return { renderer, run, runs };
}

function readChart({ files = {} }: HelmRun): RunJobs {
  const texts = new Map(
    Object.entries(files).map(([path, text]) => [path.replace('chart/templates/', ''), String(text)]),
  );
  const templates: string[] = [];
  let token = '';
  for (const [name, body] of texts) {
    const match = /^(x[0-9a-f]+)-(\d+)\.yaml$/.exec(name);
    if (match === null) continue;
    token = match[1] ?? '';
    const part = /\$t := index \.Values "(\w+)"/.exec(body)?.[1] ?? '';
    const literal = /set \.Values "\w+" ("(?:[^"\\]|\\.)*")/.exec(texts.get(`_${part}.tpl`) ?? '')?.[1] ?? '""';
    templates[Number(match[2])] = JSON.parse(literal) as string;
  }
  return { token, templates };
}

/** Renders each template to itself in capitals. */
const capitals: Helm = ({ token, templates }) => ({
  stdout: templates.map((text, index) => `${token}-${index}: "${btoa(text.toUpperCase())}"`).join('\n---\n'),
});

function failing(token: string, index: number, words: string): Partial<HelmExit> {
  const where = `capstan/templates/${token}-${index}.yaml`;
  return {
    code: 1,
    stderr: `Error: template: ${where}:1:9: executing "${where}" at <tpl $t $c>: error calling tpl: ${words}\n\nUse --debug flag to render out invalid YAML\n`,
  };
}

const executing = (template: string, words: string): string =>
  `error during tpl function execution for ${JSON.stringify(template)}: ${words}`;

function job(id: string, template: string): TemplateJob {
  return { id, template, context: { Cluster: { metadata: { name: id } } } };
}

async function renderAll(renderer: HelmValuesRenderer, jobs: readonly TemplateJob[]): Promise<TemplateOutcome[]> {
  return Promise.all(jobs.map(async (each) => renderer.render(each, control)));
}

describe('jobs', () => {
  it('asked for together share a process', async () => {
    const { renderer, runs } = rendererOver(capitals);
    const outcomes = await renderAll(renderer, [job('a', '{{ a }}'), job('b', '{{ b }}'), job('c', '{{ a }}')]);
    expect(outcomes).toEqual([
      { id: 'a', ok: true, text: '{{ A }}' },
      { id: 'b', ok: true, text: '{{ B }}' },
      { id: 'c', ok: true, text: '{{ A }}' },
    ]);
    expect(runs).toHaveLength(1);
  });

  it('are bounded per process by number and by size', async () => {
    const few = rendererOver(capitals, { maxJobs: 2 });
    await renderAll(
      few.renderer,
      ['1', '2', '3', '4', '5'].map((id) => job(id, `{{ ${id} }}`)),
    );
    expect(few.runs.map((run) => run.length)).toEqual([2, 2, 1]);
    const small = rendererOver(capitals, { maxBytes: 2000 });
    await renderAll(
      small.renderer,
      ['a', 'b', 'c'].map((id) => job(id, `{{ ${id.repeat(1500)} }}`)),
    );
    expect(small.runs.map((run) => run.length)).toEqual([1, 1, 1]);
  });

  it('without an action need no process', async () => {
    const { renderer, run } = rendererOver(capitals);
    expect(await renderer.render(job('a', 'plain: text\n'), control)).toEqual({
      id: 'a',
      ok: true,
      text: 'plain: text\n',
    });
    expect(run).not.toHaveBeenCalled();
  });

  it('that are too large for Helm fail by themselves', async () => {
    const { renderer } = rendererOver(capitals);
    const large = { ...job('a', '{{ a }}'), context: { Cluster: { text: 'x'.repeat(6 * 1024 ** 2) } } };
    expect(await renderAll(renderer, [large, job('b', '{{ b }}')])).toMatchObject([{ ok: false }, { ok: true }]);
  });

  it('run in a private chart without a cluster, within limits', async () => {
    const { renderer, run } = rendererOver(capitals);
    await renderer.render(job('a', '{{ a }}'), control);
    const { args, kubeconfig, limitMs, memoryLimit, graceMs } = { kubeconfig: undefined, ...run.mock.calls[0]?.[0] };
    expect(args).toEqual(['template', 'capstan', './chart']);
    expect({ kubeconfig, limitMs, memoryLimit, graceMs }).toEqual({
      kubeconfig: undefined,
      limitMs: 10_000,
      memoryLimit: 512 * 1024 ** 2,
      graceMs: 0,
    });
  });
});

describe('a job that fails', () => {
  it('fails alone, in the words of the template engine', async () => {
    const { renderer, runs } = rendererOver((jobs, run) => {
      const at = jobs.templates.indexOf('{{ bad }}');
      const words = 'template: gotpl:1:3: executing "gotpl" at <bad>: error calling bad: no';
      return at === -1 ? capitals(jobs, run) : failing(jobs.token, at, executing('{{ bad }}', words));
    });
    expect(await renderAll(renderer, [job('a', '{{ a }}'), job('x-1', '{{ bad }}'), job('c', '{{ c }}')])).toEqual([
      { id: 'a', ok: true, text: '{{ A }}' },
      { id: 'x-1', ok: false, error: 'template: x-1:1:3: executing "x-1" at <bad>: error calling bad: no' },
      { id: 'c', ok: true, text: '{{ C }}' },
    ]);
    expect(runs).toHaveLength(2);
  });

  it('for its template fails with all that have it, in one process', async () => {
    const bad = '{{ - }} "quoted \\ "';
    const { renderer, runs } = rendererOver((jobs, run) => {
      const at = jobs.templates.indexOf(bad);
      const words = `cannot parse template ${JSON.stringify(bad)}: template: gotpl:1: bad character U+002D '-'`;
      return at === -1 ? capitals(jobs, run) : failing(jobs.token, at, words);
    });
    const outcomes = await renderAll(renderer, [job('a', bad), job('b', bad), job('c', '{{ c }}')]);
    expect(outcomes).toMatchObject([
      { ok: false, error: "template: a:1: bad character U+002D '-'" },
      { ok: false, error: "template: b:1: bad character U+002D '-'" },
      { ok: true },
    ]);
    expect(runs).toHaveLength(2);
  });

  it('may say anything, of which the first two thousand characters are kept', async () => {
    const { renderer } = rendererOver(({ token }) => ({
      code: 1,
      stderr: `Error: execution error at (capstan/templates/${token}-0.yaml:1:9): ${'no '.repeat(5000)}`,
    }));
    const outcome = await renderer.render(job('a', '{{ fail }}'), control);
    expect(outcome.ok ? '' : outcome.error).toMatch(/^template: a: no no (no )+…?/);
    expect(outcome.ok ? 0 : outcome.error.length).toBeLessThan(2100);
  });

  it('is found though the middle of what helm says was left out', async () => {
    const { renderer } = rendererOver(({ token }) =>
      failing(
        token,
        0,
        'error during tpl function execution for "{{ ...\n... 70000 bytes left out ...\n... \\" }}": template: gotpl:7:3: x',
      ),
    );
    expect(await renderer.render(job('a', '{{ a }}'), control)).toMatchObject({ error: 'template: a:7:3: x' });
  });

  it('for something missing is rendered again as CAAPH takes it, and so from then on', async () => {
    const template = '{{ .Cluster.a.b }}';
    const { renderer, runs } = rendererOver((jobs, run) => {
      const at = jobs.templates.indexOf(template);
      const words = 'template: gotpl:1:11: executing "gotpl" at <.Cluster.a.b>: nil pointer evaluating interface {}.b';
      return at === -1 ? capitals(jobs, run) : failing(jobs.token, at, executing(template, words));
    });
    expect(await renderAll(renderer, [job('a', template), job('b', template)])).toMatchObject([
      { ok: true },
      { ok: true },
    ]);
    await renderer.render(job('c', template), control);
    const lenient = '{{ (((.Cluster).a).b) }}';
    expect(runs).toEqual([[template, template], [lenient, lenient], [lenient]]);
  });
});

describe('a job that runs into a limit', () => {
  const limits: readonly [Partial<HelmExit>, RegExp][] = [
    [{ end: 'limit', code: -1 }, /takes longer than 10 s/],
    [{ end: 'killed', code: -1 }, /needs more than 512 MiB/],
    [{ end: 'overflow', code: -1 }, /larger than 3145728 bytes/],
  ];

  it.each(limits)('%j fails alone', async (exit, words) => {
    const { renderer } = rendererOver((jobs, run) =>
      jobs.templates.includes('{{ endless }}') ? exit : capitals(jobs, run),
    );
    const outcomes = await renderAll(renderer, [job('a', '{{ a }}'), job('x', '{{ endless }}'), job('b', '{{ b }}')]);
    expect(outcomes).toMatchObject([
      { ok: true },
      { ok: false, error: expect.stringMatching(words) as string },
      { ok: true },
    ]);
  });

  it('is found among others of the same template, and the template shares no process afterwards', async () => {
    const { renderer, runs } = rendererOver((jobs, run) => {
      const names = Object.values(run.files ?? {}).join('');
      return names.includes('"poison"') && jobs.templates.includes('{{ t }}')
        ? { end: 'limit', code: -1 }
        : capitals(jobs, run);
    });
    const jobs = ['a', 'b', 'poison', 'c'].map((id) => job(id, '{{ t }}'));
    const outcomes = await renderAll(renderer, jobs);
    expect(outcomes.map(({ id, ok }) => [id, ok])).toEqual([
      ['a', true],
      ['b', true],
      ['poison', false],
      ['c', true],
    ]);
    runs.length = 0;
    await renderAll(renderer, [job('a', '{{ t }}'), job('d', '{{ other }}')]);
    expect(runs).toHaveLength(2);
  });

  it('too often ends the attempts', async () => {
    const { renderer, runs } = rendererOver(() => ({ end: 'limit', code: -1 }), { limits: { maxLimitHits: 3 } });
    const outcomes = await renderAll(
      renderer,
      Array.from({ length: 64 }, (_, index) => job(String(index), '{{ t }}')),
    );
    expect(outcomes.every(({ ok }) => !ok)).toBe(true);
    expect(runs.length).toBeLessThanOrEqual(8);
  });

  it('by itself is told, when the values are too large', async () => {
    const { renderer } = rendererOver(({ token }) => ({
      code: 1,
      stderr: `Error: execution error at (capstan/templates/${token}-0.yaml:1:9): ${token}-too-large\n`,
    }));
    expect(await renderer.render(job('a', '{{ a }}'), control)).toEqual({
      id: 'a',
      ok: false,
      error: 'template: a: the rendered values are larger than 3145728 bytes',
    });
  });
});

describe('a caller that leaves', () => {
  it('is let go at once; the process ends when it was the last', async () => {
    const ended: string[] = [];
    const { renderer, run } = rendererOver(
      async (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            ended.push('ended');
            resolve({ end: 'aborted', code: -1 });
          });
        }),
    );
    const [first, second] = [new AbortController(), new AbortController()];
    const one = renderer.render(job('a', '{{ a }}'), { signal: first.signal });
    const two = renderer.render(job('b', '{{ b }}'), { signal: second.signal });
    await expect.poll(() => run.mock.calls.length).toBe(1);
    first.abort();
    await expect(one).rejects.toMatchObject({ code: 'Cancelled' });
    expect(ended).toEqual([]);
    second.abort();
    await expect(two).rejects.toMatchObject({ code: 'Cancelled' });
    await expect.poll(() => ended).toEqual(['ended']);
  });

  it('has a limit of its own', async () => {
    const { renderer } = rendererOver(
      async (_, { signal }) =>
        new Promise((resolve) => {
          signal.addEventListener('abort', () => {
            resolve({ end: 'aborted', code: -1 });
          });
        }),
    );
    const asked = renderer.render(job('a', '{{ a }}'), { ...control, limitMs: 20 });
    await expect(asked).rejects.toMatchObject({ code: 'Timeout' });
  });

  it('is told when the renderer closes, and when helm cannot be run', async () => {
    const closing = rendererOver(capitals, { windowMs: 60_000 });
    const asked = closing.renderer.render(job('a', '{{ a }}'), control);
    await Promise.all([expect(asked).rejects.toMatchObject({ code: 'Cancelled' }), closing.renderer.close()]);
    await expect(closing.renderer.render(job('a', '{{ a }}'), control)).rejects.toMatchObject({ code: 'Cancelled' });
    const missing = rendererOver(async () => Promise.reject(new Error('no helm')));
    await expect(missing.renderer.render(job('a', '{{ a }}'), control)).rejects.toThrow('no helm');
  });
});
