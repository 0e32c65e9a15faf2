import { readdir, rm, mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { binaries } from '../../hack/binaries.ts';
import { HelmProcesses, HelmValuesRenderer, helmProcessOptions } from '../../src/helm/index.ts';
import type { TemplateOutcome } from '../../src/helm/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';

/**
 * What CAAPH makes of each template (Go's text/template and Sprig 3.3.0, run once beside), with `<no value>` left out.
 * The context is CONTEXT.
 */
const AS_CAAPH: readonly (readonly [string, string])[] = [
  ['{{ .Cluster.spec.big }} {{ .Cluster.spec.huge }} {{ .Cluster.spec.fraction }}', '1000000 123456789012345 0.1'],
  [
    '{{ eq .Cluster.spec.big 1000000 }} {{ kindOf .Cluster.spec.big }} {{ kindOf .Cluster.spec.fraction }}',
    'true int64 float64',
  ],
  ['{{ add .Cluster.spec.big 1 }} {{ .Cluster.spec.none | default "d" }} {{ .Cluster.spec.none }}', '1000001 d '],
  ['{{ .Cluster.spec.pods | join "," }} {{ index .Cluster.spec.pods 1 }}', '10.0.0.0/16,fd00::/64 fd00::/64'],
  ['{{ toJson .Cluster.spec.list }}', '[1,"ä\\n\\"{{",{"x":[]}]'],
  ['{{ .Cluster.metadata.annotations.text }}', 'multi\nline "q" \\ \t {{ }} ü € 😀'],
  // A missing map is nothing to CAAPH, and an error to Helm.
  ['a{{ range .Cluster.spec.gone.pods }}{{ . }}{{ end }}b{{ .Cluster.spec.gone.x.y }}', 'ab'],
  ['{{ hasKey .Cluster.metadata.gone "x" }} {{ .ControlPlane.metadata.name }}', 'false '],
  ['{{ with .Cluster.spec.a.b }}x{{ else }}y{{ end }}{{ (semver "1.2.3").Major }}{{ .z.y.x | quote }}', 'y1'],
  ['{{ define "t" }}[{{ .name }}]{{ end }}{{ template "t" .Cluster.metadata }}', '[one]'],
  ['text\n---\n\nwith: {{ "it" }} all\n\n', 'text\n---\n\nwith: it all\n\n'],
  ['{{- /* nothing */ -}}', ''],
  ['{{ $_ := set .Cluster "added" 1 }}{{ .Cluster.added }}', '1'],
  ['{{ .Cluster.added }}', ''],
];

/** What CAAPH says of each. The template's name is the job's id. */
const AS_CAAPH_FAILS: readonly (readonly [string, string])[] = [
  ['a\n{{ - }}', ':2: illegal number syntax: "-"'],
  ['{{ nothing }}', ':1: function "nothing" not defined'],
  ['{{ env "HOME" }}', ':1: function "env" not defined'],
  ['{{ expandenv "$HOME" }}', ':1: function "expandenv" not defined'],
  ['{{ .Cluster', ':1: unclosed action'],
  [
    '{{ index .Cluster.spec.pods 5 }}',
    ':1:3: executing "ID" at <index .Cluster.spec.pods 5>: error calling index: index out of range: 5',
  ],
  [
    '{{ .Cluster.metadata.name.first }}',
    ':1:11: executing "ID" at <.Cluster.metadata.name.first>: can\'t evaluate field first in type interface {}',
  ],
];

const CONTEXT = {
  Cluster: {
    metadata: { name: 'one', annotations: { text: 'multi\nline "q" \\ \t {{ }} ü € 😀' } },
    spec: {
      big: 1000000,
      huge: 123456789012345,
      fraction: 0.1,
      none: null,
      pods: ['10.0.0.0/16', 'fd00::/64'],
      list: [1, 'ä\n"{{', { x: [] }],
    },
  },
};

describe.each(['helm', 'helm3'] as const)('values templates with %s', (which) => {
  const control = { signal: new AbortController().signal };
  let directory: string;
  let processes: HelmProcesses;
  let renderer: HelmValuesRenderer;

  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'capstan-renderer-'));
    const telemetry = createTelemetry();
    const options = helmProcessOptions({ helmPath: (await binaries())[which], workDir: directory });
    processes = new HelmProcesses(options, telemetry);
    renderer = new HelmValuesRenderer(processes, { limits: { runMs: 5_000 } }, telemetry);
  });

  afterAll(async () => {
    await renderer.close();
    await processes.close();
    await rm(directory, { recursive: true, force: true });
  });

  async function renderAll(templates: readonly string[], context: object = CONTEXT): Promise<TemplateOutcome[]> {
    const jobs = templates.map((template, index) => ({ id: `id-${index}`, template, context: { ...context } }));
    return Promise.all(jobs.map(async (job) => renderer.render(job, control)));
  }

  function texts(outcomes: readonly TemplateOutcome[]): string[] {
    return outcomes.map((outcome) => (outcome.ok ? outcome.text : outcome.error));
  }

  it('come out as with CAAPH, all of one batch', async () => {
    expect(texts(await renderAll(AS_CAAPH.map(([template]) => template)))).toEqual(AS_CAAPH.map(([, text]) => text));
  });

  it('fail as with CAAPH, and leave the others alone', async () => {
    const outcomes = await renderAll([
      ...AS_CAAPH_FAILS.map(([template]) => template),
      'ok: {{ .Cluster.metadata.name }}',
    ]);
    const expected = AS_CAAPH_FAILS.map(
      ([, error], index) => `template: id-${index}${error.replace('ID', `id-${index}`)}`,
    );
    expect(texts(outcomes)).toEqual([...expected, 'ok: one']);
    expect(outcomes.map(({ ok }) => ok)).toEqual([...expected.map(() => false), true]);
  });

  it('see nothing but their context: no chart, no release, no cluster, no name service', async () => {
    const peek = '{{ .Values }}{{ .Release }}{{ .Files }}{{ .Chart }}{{ .Template }}{{ .Capabilities }}';
    const outcomes = await renderAll([
      peek,
      '{{ getHostByName "localhost" }}',
      '{{ lookup "v1" "Secret" "" "" }}',
      '{{ keys . }}',
    ]);
    expect(texts(outcomes)).toEqual(['', '', 'map[]', '[Cluster]']);
  });

  it('that are wrong in every cluster fail in every cluster', async () => {
    const outcomes = await renderAll(Array.from({ length: 12 }, () => '{{ index .Cluster.spec.pods 5 }}'));
    expect(outcomes.every(({ ok }) => !ok)).toBe(true);
  });

  it('may be many, and their contexts large and deep', async () => {
    let deep: unknown = 'bottom';
    for (let depth = 0; depth < 500; depth += 1) deep = { down: [deep] };
    const items = Array.from({ length: 1000 }, (_, index) => ({
      name: `item-${index}`,
      text: 'x'.repeat(80),
      n: index,
    }));
    const context = { Cluster: { deep, items } };
    const [large] = await renderAll(
      ['{{ len .Cluster.items }} {{ (index .Cluster.items 999).n }} {{ len (toJson .Cluster.deep) }}'],
      context,
    );
    expect(large).toEqual({ id: 'id-0', ok: true, text: `1000 999 ${JSON.stringify(deep).length}` });
    const many = Array.from({ length: 500 }, (_, index) => ({
      id: String(index),
      template: '{{ .Cluster.metadata.name }}',
      context: { Cluster: { metadata: { name: `cluster-${index}` } } },
    }));
    const outcomes = await Promise.all(many.map(async (job) => renderer.render(job, control)));
    expect(texts(outcomes)).toEqual(many.map(({ id }) => `cluster-${id}`));
  });

  it('that never end, or grow without end, fail alone', async () => {
    const outcomes = await renderAll([
      'ok: {{ .Cluster.metadata.name }}',
      '{{ range until 1000000000 }}x{{ end }}',
      '{{ range $i := until 40000 }}{{ range $j := until 40000 }}{{ end }}{{ end }}',
      '{{ repeat 4000000 "x" }}',
      '{{ fail "no: thanks" }}',
    ]);
    expect(texts(outcomes)).toEqual([
      'ok: one',
      expect.stringMatching(/^template: id-1: rendering (needs more than 512 MiB of memory|takes longer than 5 s)$/),
      'template: id-2: rendering takes longer than 5 s',
      'template: id-3: the rendered values are larger than 3145728 bytes',
      'template: id-4: no: thanks',
    ]);
  });

  it('leave nothing behind', async () => {
    const [base] = await readdir(directory);
    expect(await readdir(join(directory, base!))).toEqual([]);
    expect(processes.running).toBe(0);
  });
});
