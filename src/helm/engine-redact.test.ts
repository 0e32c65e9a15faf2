import { describe, expect, it } from 'vitest';
import { redactValues } from './engine-redact.ts';

describe('redactValues', () => {
  it('masks what a schema check quotes of the values, however short', () => {
    const text = [
      "- at '/a': 'abc' does not match pattern '^x+$'",
      "- at '/mail': 'it's' is not valid email: missing @",
      "- at '/n': value must be one of 'q', 'r'",
      "- at '/port': maximum: got 400, want 10",
    ].join('\n');
    expect(redactValues(text, { a: 'abc', mail: "it's" }).split('\n')).toEqual([
      "- at '/a': '***' does not match pattern '^x+$'",
      "- at '/mail': '***' is not valid email: missing @",
      "- at '/n': value must be one of 'q', 'r'",
      "- at '/port': maximum: got 400, want 10",
    ]);
  });

  it.each([
    ['a value', 'set a sane password, not hunter2', { auth: { password: 'hunter2' } }, 'set a sane password, not ***'],
    ['a value in a list', 'bad: hunter2.', { list: ['x', { y: 'hunter2' }] }, 'bad: ***.'],
    ['each time', 'hunter2 hunter2', { p: 'hunter2' }, '*** ***'],
    ['a long value within a word', 'xcorrecthorsebatteryx', { p: 'correcthorsebattery' }, 'x***x'],
    ['the longer of two first', 'abcdefgh', { a: 'abcde', b: 'abcdefgh' }, '***'],
    ['as it stands in a Secret', 'Invalid value: "aHVudGVyMg=="', { p: 'hunter2' }, 'Invalid value: "***"'],
    ['as it is quoted', String.raw`got "line \"one\""`, { p: 'line "one"' }, 'got "***"'],
    ['line by line', 'unexpected: secret line two', { p: 'first line\n  secret line two\n' }, 'unexpected: ***'],
    ['what is a pattern elsewhere', 'got a.c*(d', { p: 'a.c*(d' }, 'got ***'],
  ])('masks %s', (_name, text, values, expected) => {
    expect(redactValues(text, values)).toBe(expected);
  });

  it('leaves words alone that are no values', () => {
    const text = 'resource Deployment/ns/demo-release not ready in https://10.0.0.1';
    expect(redactValues(text, { scheme: 'http', port: 10, on: true, nothing: null, part: 'release' }, [])).toBe(
      'resource Deployment/ns/demo-*** not ready in https://10.0.0.1',
    );
    expect(redactValues(text, { part: 'demo-release' }, ['demo-release'])).toBe(text);
    expect(redactValues(text, { part: 'ready not', other: 'ploy' })).toBe(text);
  });

  it('does nothing without values', () => {
    expect(redactValues('text', {})).toBe('text');
  });
});
