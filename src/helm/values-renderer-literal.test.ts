import { describe, expect, it } from 'vitest';
import { goString, goValue } from './values-renderer-literal.ts';

describe('goValue', () => {
  it.each([
    [1000000, '(int64 1000000)'],
    [-5, '(int64 -5)'],
    [0, '(int64 0)'],
    [-0, '(int64 0)'],
    [0.1, '0.1'],
    [-2.5e-9, '-2.5e-9'],
    [1e21, '1e+21'],
    [2 ** 63, '9223372036854776000.0'],
    [9223372036854775807n, '(int64 9223372036854775807)'],
    [Number.NaN, 'nil'],
    [true, 'true'],
    [null, 'nil'],
    ['a"b\\c\n\t\u0000', String.raw`"a\"b\\c\n\t\u0000"`],
    ['{{ ü 😀 }}', '"{{ ü 😀 }}"'],
    [[], '(list)'],
    [[1, [null], {}], '(list (int64 1) (list nil) (dict))'],
    [{ a: 1, 'b c': { d: undefined } }, '(dict "a" (int64 1) "b c" (dict))'],
  ])('number %# of these is written in Go', (value, expected) => {
    expect(goValue(value)).toBe(expected);
  });

  it('makes what UTF-8 cannot say a replacement character', () => {
    expect(goString('a\ud800b')).toBe('"a\ufffdb"');
  });
});
