import { describe, expect, it } from 'vitest';
import { projectContext, templatePaths } from './template-paths.ts';
import type { Paths } from './template-paths.ts';

/** 'a.b c' for paths [[a, b], [c]]. */
function text(paths: Paths): string {
  return typeof paths === 'string' ? paths : paths.map((path) => path.join('.')).join(' ');
}

function read(template: string): [string, string, string] {
  const { cluster, controlPlane, infraCluster } = templatePaths(template);
  return [text(cluster), text(controlPlane), text(infraCluster)];
}

describe('templatePaths', () => {
  it.each([
    ['no action', 'none', 'none', 'none'],
    ['{{ .Cluster.metadata.name }}', 'metadata.name', 'none', 'none'],
    ['{{- $.Cluster.spec.a | quote -}}', 'spec.a', 'none', 'none'],
    ['{{ .Cluster }}', 'all', 'none', 'none'],
    ['{{ .InfraCluster.spec.vpc }}{{ .ControlPlane.spec.replicas }}', 'none', 'spec.replicas', 'spec.vpc'],
    ['{{ range $i, $c := .Cluster.spec.pods }}{{ $c.x }}{{ . }}{{ .y }}{{ end }}', 'spec.pods', 'none', 'none'],
    ['{{ with .Cluster.spec }}{{ . }}{{ else }}none{{ end }}', 'spec', 'none', 'none'],
    // In an else, dot is what it was around the block.
    ['{{ with .Cluster.spec }}x{{ else }}{{ . }}{{ end }}', 'all', 'none', 'none'],
    ['{{ with .Cluster.a }}x{{ else with .Cluster.b }}{{ . }}{{ end }}', 'a b', 'none', 'none'],
    ['{{ with .Cluster.a }}x{{ else if .Cluster.b }}{{ . }}{{ end }}', 'all', 'none', 'none'],
    ['{{ if .Cluster.a }}{{ . }}{{ end }}', 'all', 'none', 'none'],
    ['{{ range .Cluster.a }}{{ if .x }}{{ . }}{{ end }}{{ end }}', 'a', 'none', 'none'],
    ['{{ range .Cluster.a }}{{ end }}{{ . }}', 'all', 'none', 'none'],
    ['{{ range .Cluster.a }}{{ $ | toJson }}{{ end }}', 'all', 'none', 'none'],
    ['{{ . }}', 'all', 'none', 'none'],
    // All of what it names elsewhere, but nothing that it does not name.
    ['{{ toJson . }}{{ .InfraCluster.spec.x }}', 'all', 'none', 'all'],
    ['{{ $r := . }}{{ $r.ControlPlane.spec.x }}', 'all', 'all', 'none'],
    ['{{ $c := .Cluster.spec }}{{ $c.x }}', 'spec', 'none', 'none'],
    ['{{ index .Cluster.metadata.labels "a/b" }}', 'metadata.labels.a/b', 'none', 'none'],
    ['{{ index .Cluster.spec.list 0 }}', 'spec.list', 'none', 'none'],
    ['{{ (index .Cluster.spec "a" "b").c }}', 'spec.a.b', 'none', 'none'],
    [
      '{{ get .Cluster.metadata.labels "a" }}{{ hasKey .Cluster.spec "b" }}',
      'metadata.labels.a spec.b',
      'none',
      'none',
    ],
    ['{{ index . "InfraCluster" "spec" "x" }}', 'none', 'none', 'spec.x'],
    ['{{ get $ "ControlPlane" | toJson }}', 'none', 'all', 'none'],
    ['{{ (dig "InfraCluster" "spec" dict .).x }}', 'all', 'none', 'all'],
    ['{{ template "t" . }}{{ define "t" }}{{ .Cluster.spec.a }}{{ end }}', 'spec.a', 'none', 'none'],
    ['{{ template "t" . }}{{ define "t" }}{{ toJson . }}{{ end }}', 'all', 'none', 'none'],
    ['{{ include "t" $ }}{{ define "t" }}{{ .InfraCluster.a }}{{ end }}', 'none', 'none', 'a'],
    ['{{ template "t" .Cluster.spec }}{{ define "t" }}{{ .a }}{{ end }}', 'spec', 'none', 'none'],
    ['{{ block "b" . }}{{ .Cluster.a }}{{ end }}', 'a', 'none', 'none'],
    ['{{/* .InfraCluster */}}{{- /* {{ . }} */ -}}', 'none', 'none', 'none'],
    ['{{ "{{ .InfraCluster }}" }}{{ `}} {{ . }}` }}', 'none', 'none', 'none'],
    ['{{ tpl "{{ .InfraCluster.x }}" . }}', 'all', 'none', 'all'],
    ['{{ .Cluster.spec.a }}{{ .Cluster.spec.a.b }}{{ .Cluster.spec.ab }}', 'spec.a spec.ab', 'none', 'none'],
    ['{{ printf "%s" (.Cluster.a | default .Cluster.b) }}', 'a b', 'none', 'none'],
    ['{{ eq .Cluster.a "x" | ternary 1.5 \'c\' }}', 'a', 'none', 'none'],
  ])('%s', (template, cluster, controlPlane, infraCluster) => {
    expect(read(template)).toEqual([cluster, controlPlane, infraCluster]);
  });

  it.each(['{{ .Cluster', '{{ "open }}', '{{ .Cluster | ^ }}', '{{/* open'])(
    'of %s, which no engine can read, is all that it names',
    (template) => {
      expect(read(template)).toEqual(['all', 'none', 'none']);
      expect(read(`${template} .InfraCluster`)).toEqual(['all', 'none', 'all']);
    },
  );

  it('keeps what has dots in its name in one piece', () => {
    expect(templatePaths('{{ index .Cluster.metadata.labels "x.test/a" }}').cluster).toEqual([
      ['metadata', 'labels', 'x.test/a'],
    ]);
  });
});

describe('projectContext', () => {
  const object = {
    metadata: { name: 'a', resourceVersion: '1', generation: 2, managedFields: [], labels: { a: 'b', c: 'd' } },
    spec: { list: [{ x: 1 }], none: null, deep: { a: { b: 1 }, c: 2 } },
  };
  const project = (template: string): unknown => projectContext(object, templatePaths(template).cluster);

  it('gives what is read and nothing else', () => {
    expect(project('{{ .Cluster.spec.deep.a.b }}{{ index .Cluster.metadata.labels "a" }}')).toEqual({
      metadata: { labels: { a: 'b' } },
      spec: { deep: { a: { b: 1 } } },
    });
  });

  it('tells what is missing from what is null and from where it is missing', () => {
    expect(project('{{ .Cluster.spec.none.x }}')).toEqual({ spec: { none: null } });
    expect(project('{{ .Cluster.spec.gone.x }}')).toEqual({ spec: {} });
    expect(project('{{ .Cluster.gone.x }}')).toEqual({});
    expect(project('{{ .Cluster.constructor }}')).toEqual({});
  });

  it('takes lists whole', () => {
    expect(project('{{ .Cluster.spec.list.x }}')).toEqual({ spec: { list: [{ x: 1 }] } });
  });

  it('leaves out what every write changes, unless it is asked for by name', () => {
    const metadata = { name: 'a', labels: { a: 'b', c: 'd' } };
    expect(project('{{ .Cluster }}')).toEqual({ ...object, metadata });
    expect(project('{{ .Cluster.metadata }}')).toEqual({ metadata });
    expect(project('{{ .Cluster.metadata.generation }}')).toEqual({ metadata: { generation: 2 } });
    expect(object.metadata.resourceVersion).toBe('1');
  });

  it('of nothing is nothing', () => {
    expect(projectContext(undefined, 'all')).toBeUndefined();
    expect(projectContext(object, 'none')).toBeUndefined();
    expect(project('text')).toBeUndefined();
  });
});
