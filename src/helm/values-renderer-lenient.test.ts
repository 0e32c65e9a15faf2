import { describe, expect, it } from 'vitest';
import { makeLenient } from './values-renderer-lenient.ts';

describe('makeLenient', () => {
  it.each([
    ['{{ .a }}', '{{ (.a) }}'],
    ['{{ .a.b.c }}', '{{ (((.a).b).c) }}'],
    ['{{ $.a.b }}', '{{ ((($).a).b) }}'],
    ['{{ $x.a }} {{ $x }}', '{{ (($x).a) }} {{ ($x) }}'],
    ['{{ $x := .a.b }}', '{{ $x := ((.a).b) }}'],
    ['{{ range $i, $e := .a.b }}{{ $e.x }}{{ end }}', '{{ range $i, $e := ((.a).b) }}{{ (($e).x) }}{{ end }}'],
    ['{{ $x = .a.b }}', '{{ $x = ((.a).b) }}'],
    ['{{ hasKey .a.b "c" }}', '{{ hasKey ((.a).b) "c" }}'],
    ['{{ (index .a 0).b.c }}', '{{ ((index (.a) 0).b).c) }}'.replace('((index', '(((index')],
    ['{{ if and .a.b (eq .c "x") }}', '{{ if and ((.a).b) (eq (.c) "x") }}'],
    ['{{ with . }}{{ . }}', undefined],
    ['{{ "x" }} .a.b', undefined],
    // A method, or what could be one, stays bare.
    ['{{ $v.Compare .x }}', '{{ $v.Compare (.x) }}'],
    ['{{ .x.Compare 1 }}', undefined],
    ['{{ .v | .x.Method }}', '{{ (.v) | .x.Method }}'],
    ['{{ (semver .v).Compare .w }}', '{{ (semver (.v)).Compare (.w) }}'],
    ['{{ if .x.Is 1 }}', undefined],
    ['{{/* .a.b */}}{{ `.a.b` }}', undefined],
    ['{{ .open', undefined],
  ])('%s is written %s', (template, expected) => {
    expect(makeLenient(template)?.text).toBe(expected);
  });

  it('restores places and expressions of what Go says', () => {
    const lenient = makeLenient('ü\né {{ .a.b }} {{ index .c.d 0 }}');
    const { text } = lenient ?? { text: '' };
    const line = text.split('\n')[1] ?? '';
    // Go counts bytes.
    const column = Buffer.byteLength(line.slice(0, line.indexOf('index')));
    const said = `template: gotpl:2:${column}: executing "gotpl" at <index ((.c).d) 0>: error calling index: (x) no`;
    expect(lenient?.restore(said)).toBe(
      `template: gotpl:2:${'é {{ .a.b }} {{ '.length + 1}: executing "gotpl" at <index .c.d 0>: error calling index: (x) no`,
    );
  });
});
