import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { HelmError } from './errors.ts';
import { canonicalJson, configDigest, valuesDigest } from './values-digest.ts';
import { parseValues, valuesAsJson } from './values-yaml.ts';
import type { JsonObject, JsonValue } from './values-yaml.ts';

describe('parseValues', () => {
  // What sigs.k8s.io/yaml v1.6.0 makes of them (the library in Helm 3.22 and 4.1), tried.
  it.each<[string, JsonObject]>([
    ['', {}],
    ['# nothing', {}],
    ['null', {}],
    ['---\n', {}],
    ['a: 1\n...\n', { a: 1 }],
    ['---\na: 1\n---\n# nothing\n', { a: 1 }],
    ['\ufeffa: 1', { a: 1 }],
    ['{"a": [1, true, null, "x", {"b": 2.50}]}', { a: [1, true, null, 'x', { b: 2.5 }] }],
    ['a: 1\nb: 1.0\nc: -0\nd: +1\ne: 1_000\nf: 1.', { a: 1, b: 1, c: 0, d: 1, e: 1000, f: 1 }],
    ['a: 0x10\nb: 010\nc: 0o10\nd: 0b11\ne: 08\nf: -0x10\ng: 0X1F', { a: 16, b: 8, c: 8, d: 3, e: 8, f: -16, g: 31 }],
    [
      'a: 1e3\nb: 1.5E+3\nc: 1e-7\nd: 1e\ne: 1e21\nf: .5\ng: .5_5',
      { a: 1000, b: 1500, c: 1e-7, d: '1e', e: 1e21, f: 0.5, g: 0.55 },
    ],
    ['a: 12345678901234567890', { a: 12345678901234567000 }],
    ['a: 9007199254740993', { a: 9007199254740992 }],
    ['a: 123456789012345678901', { a: 123456789012345680000 }],
    ['a: 1e400\nb: -1e400', { a: '1e400', b: '-1e400' }],
    [
      'a: yes\nb: No\nc: y\nd: N\ne: on\nf: OFF\ng: True\nh: tRue',
      { a: true, b: false, c: true, d: false, e: true, f: false, g: true, h: 'tRue' },
    ],
    ['a: ~\nb:\nc: null\nd: Null\ne: nULL\nf: ""', { a: null, b: null, c: null, d: null, e: 'nULL', f: '' }],
    [
      'a: 2001-01-01\nb: 1:30\nc: 190:20:30\nd: 1.2.3\ne: 10.0.0.0/8',
      { a: '2001-01-01', b: '1:30', c: '190:20:30', d: '1.2.3', e: '10.0.0.0/8' },
    ],
    ['a: "yes"\nb: \'1\'\nc: |\n  2\nd: >-\n  x\n  y', { a: 'yes', b: '1', c: '2\n', d: 'x y' }],
    ['a: |\n  no line break at the end', { a: 'no line break at the end' }],
    ['a: |+\n  x\n\nb: 1', { a: 'x\n\n', b: 1 }],
    ['a: "é \\u00e9 😀 \\x41"', { a: 'é é 😀 A' }],
    ['a: "one\ntwo"\nb: \'three\nfour\'', { a: 'one two', b: 'three four' }],
    ['a: b\r\nc: d\r\n', { a: 'b', c: 'd' }],
    [
      '1: a\n1.5: b\ntrue: c\nno: d\n0x10: e\n1e6: f\n-.inf: g',
      { '1': 'a', '1.5': 'b', true: 'c', false: 'd', '16': 'e', '1e+06': 'f', '-.inf': 'g' },
    ],
    ['a: 1\na: 2', { a: 2 }],
    ['1: a\n"1": b', { '1': 'b' }],
    ['a: &x 1\nb: &y [*x]\nc: &x 2\nd: *y\ne: *x', { a: 1, b: [1], c: 2, d: [1], e: 2 }],
    ['a: &x {b: 1}\nc: *x\nd: [*x, *x]', { a: { b: 1 }, c: { b: 1 }, d: [{ b: 1 }, { b: 1 }] }],
    [
      'x: &x {b: 1, e: 4}\nc: {b: 2, <<: *x, d: 3}\nd: {<<: *x, b: 5}',
      { x: { b: 1, e: 4 }, c: { b: 1, e: 4, d: 3 }, d: { b: 5, e: 4 } },
    ],
    ['<<: [{a: 1}, {a: 2, b: 3}]\nc: "<<"\n"<<": quoted', { a: 1, b: 3, c: '<<', '<<': 'quoted' }],
    [
      'a: !!str 1\nb: !!int "3"\nc: !!float 3\nd: !!bool "yes"\ne: !!binary aGk=\nf: !own bar\ng: ! 5',
      { a: '1', b: 3, c: 3, d: true, e: 'hi', f: 'bar', g: '5' },
    ],
    ['a: [1, , {x: , y}]', { a: [1, null, { x: null, true: null }] }],
    ['%YAML 1.1\n---\na: yes', { a: true }],
  ])('reads %j', (text, expected) => {
    // Go reads an empty item in a flow list as null; YAML 1.2 refuses it.
    if (text.includes('[1, ,')) expect(parseValues('a: [1, ~, {x: , y}]')).toEqual(expected);
    else expect(parseValues(text)).toEqual(expected);
  });

  it('keeps keys that mean something to JavaScript', () => {
    const values = parseValues('__proto__: {x: 1}\nconstructor: 2');
    expect(Object.keys(values)).toEqual(['__proto__', 'constructor']);
    expect(JSON.stringify(values)).toBe('{"__proto__":{"x":1},"constructor":2}');
  });

  it.each([
    ['a: 1\nb: [1', 'not valid YAML', 2],
    ['a: b: c', 'not valid YAML', 1],
    ['a: 1\n\tb: 2', 'not valid YAML', 2],
    ['a: @x', 'not valid YAML', 1],
    ['%b: a', 'not valid YAML', 1],
    ['just text', 'a single value, not a map', 1],
    ['- a\n- b', 'a list, not a map', 1],
    ['5', 'a single value, not a map', 1],
    ['a: 1\n---\nb: 2', 'more than one YAML document', 2],
    ['---\n---\na: 1', 'more than one YAML document', 2],
    ['a: 1\nb: .inf', 'infinity', 2],
    ['a: .nan', 'NaN', 1],
    ['a: 1\n~: b', 'a key is null', 2],
    ['? [a]\n: b', 'a key is a map or a list', 1],
    ['18446744073709551615: x', 'too large a number', 1],
    ['a: *x', 'unknown anchor', 1],
    ['a: &a [*a]', 'contains itself', 1],
    ['<<: 1', 'map merge', 1],
    ['x: &x 1\n<<: *x', 'map merge', 2],
    ['a: !!int x', 'not what its tag says', 1],
    ['a: !!bool 1', 'not what its tag says', 1],
    ['a: 1\nb: "\u0007"', 'control character', 2],
    ['a: "\\ud83d"', 'surrogate', 1],
  ])('refuses %j', (text, what, line) => {
    const error = refusal(text);
    expect(error).toMatchObject({ code: 'ValuesInvalid', handling: 'never', line });
    expect(error.message).toContain(what);
    expect(error.message).toContain(`at line ${String(line)}`);
  });

  it('quotes nothing of the values', () => {
    for (const text of [
      'password: hunter2: x',
      'hunter2',
      'a: [hunter2',
      '- hunter2',
      'a: !!int hunter2',
      'a: *hunter2',
    ]) {
      expect(refusal(text).message).not.toContain('hunter2');
    }
  });

  it('refuses what unfolds without bounds', () => {
    const lines = ['a0: &a0 [x, x, x, x, x, x, x, x, x, x]'];
    for (let i = 1; i < 9; i++) {
      const previous = `*a${String(i - 1)}`;
      lines.push(`a${String(i)}: &a${String(i)} [${Array<string>(10).fill(previous).join(', ')}]`);
    }
    expect(refusal(lines.join('\n')).message).toContain('too many aliases');
  });

  it('refuses what is nested without bounds', () => {
    expect(refusal(`a: ${'['.repeat(50_000)}${']'.repeat(50_000)}`).code).toBe('ValuesInvalid');
  });

  it('reads back whatever a map is written as', () => {
    fc.assert(
      fc.property(jsonMap, fc.constantFrom('PLAIN', 'QUOTE_DOUBLE', 'QUOTE_SINGLE'), (map, type) => {
        const text = stringify(map, { version: '1.1', defaultStringType: type, defaultKeyType: 'QUOTE_DOUBLE' });
        expect(canonicalJson(parseValues(text))).toBe(canonicalJson(map));
      }),
      { numRuns: 100 },
    );
  });
});

describe('valuesAsJson', () => {
  it('is JSON of printable characters', () => {
    expect(valuesAsJson('a: "\\u2028 \\x85 \\x7f \\ufeff é 😀"')).toBe(
      String.raw`{"a":"\u2028 \u0085 \u007f \ufeff é 😀"}`,
    );
    expect(valuesAsJson('')).toBe('{}');
  });

  it('means the same as what it was made of', () => {
    fc.assert(
      fc.property(jsonMap, (map) => {
        const json = valuesAsJson(JSON.stringify(map));
        expect(valuesDigest(json)).toBe(configDigest(map));
        // The way around the short cut for JSON.
        expect(valuesDigest(`# comment\n${json}`)).toBe(configDigest(map));
      }),
      { numRuns: 100 },
    );
  });
});

describe('valuesDigest', () => {
  it.each([
    ['a: 1\nb: {c: x, d: [1]}', 'b:\n  d:\n  - 1.0\n  c: "x"\na: 0x1\n'],
    ['', '{}'],
    ['# c', 'null'],
    ['a: yes', '{"a": true}'],
    ['a: 1e3', 'a: 1000'],
  ])('is the same for %j and %j', (one, other) => {
    expect(valuesDigest(one)).toBe(valuesDigest(other));
  });

  it.each([
    ['a: 1', 'a: "1"'],
    ['a: null', ''],
    ['a: []', 'a: {}'],
    ['a: [1, 2]', 'a: [2, 1]'],
    ['a: ""', 'a:'],
    ['a: {b: c}', '"a.b": c'],
  ])('differs for %j and %j', (one, other) => {
    expect(valuesDigest(one)).not.toBe(valuesDigest(other));
  });

  it("is the same for a record's config", () => {
    expect(configDigest({ b: [1, null], a: 'x' })).toBe(valuesDigest('a: x\nb: [1.0, ~]'));
    expect(configDigest(undefined)).toBe(valuesDigest(''));
    expect(configDigest(null)).toBe(valuesDigest(''));
    expect(configDigest({})).toMatch(/^sha256:[0-9a-f]{64}$/);
  });
});

/** Maps as JSON can hold them. Texts of characters that YAML can hold: no control characters. */
const text = fc.string({ unit: fc.constantFrom(...Array.from('aé😀 \n:#-\'"{}[],&*!|>%@`~0123.yesno_\u2028\u00a0')) });
const json: fc.Arbitrary<JsonValue> = fc.letrec<{ value: JsonValue }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constant(null),
    fc.boolean(),
    fc.integer(),
    fc.double({ noDefaultInfinity: true, noNaN: true }),
    text,
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(text, tie('value'), { maxKeys: 4 }),
  ),
})).value;
const jsonMap = fc.dictionary(text, json, { maxKeys: 5 });

function refusal(values: string): HelmError {
  try {
    parseValues(values);
  } catch (error) {
    if (error instanceof HelmError) return error;
    throw error;
  }
  throw new Error('was not refused');
}
