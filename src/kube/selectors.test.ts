import { describe, expect, it } from 'vitest';
import { formatSelector, matchesSelector, parseSelector, validateSelector } from './selectors.ts';
import type { LabelSelector } from './selectors.ts';

const LABELS = { env: 'prod', tier: '' };

describe('matching', () => {
  const cases: readonly [string, LabelSelector, boolean][] = [
    ['an empty selector matches everything', {}, true],
    ['matchLabels must all be equal', { matchLabels: { env: 'prod', tier: '' } }, true],
    ['matchLabels: another value', { matchLabels: { env: 'test' } }, false],
    ['matchLabels: an empty value is not an absent label', { matchLabels: { zone: '' } }, false],
    ['In', { matchExpressions: [{ key: 'env', operator: 'In', values: ['test', 'prod'] }] }, true],
    ['In: an absent label is in nothing', { matchExpressions: [{ key: 'zone', operator: 'In', values: [''] }] }, false],
    ['NotIn', { matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['prod'] }] }, false],
    ['NotIn: an absent label', { matchExpressions: [{ key: 'zone', operator: 'NotIn', values: ['a'] }] }, true],
    ['Exists', { matchExpressions: [{ key: 'tier', operator: 'Exists' }] }, true],
    ['DoesNotExist', { matchExpressions: [{ key: 'tier', operator: 'DoesNotExist' }] }, false],
    ['DoesNotExist: absent', { matchExpressions: [{ key: 'zone', operator: 'DoesNotExist' }] }, true],
    ['what every object inherits is no label', { matchExpressions: [{ key: 'toString', operator: 'Exists' }] }, false],
    [
      'both parts must match',
      { matchLabels: { env: 'prod' }, matchExpressions: [{ key: 'env', operator: 'DoesNotExist' }] },
      false,
    ],
  ];
  it.each(cases)('%s', (_name, selector, expected) => {
    expect(matchesSelector(selector, LABELS)).toBe(expected);
  });

  it('an object without labels matches what asks for none', () => {
    expect(matchesSelector({}, undefined)).toBe(true);
    expect(matchesSelector({ matchLabels: { a: 'b' } }, undefined)).toBe(false);
  });
});

describe('the string form', () => {
  it.each([
    ['a=b', 'a=b'],
    ['a==b', 'a=b'],
    [' a = b , c != d ', 'a=b,c!=d'],
    ['x/y.z in (a, b),!c,d', 'x/y.z in (a,b),!c,d'],
    ['a notin (b,c)', 'a notin (b,c)'],
    ['a=', 'a='],
    ['a in ()', 'a='],
    ['', ''],
  ])('reads "%s"', (text, again) => {
    expect(formatSelector(parseSelector(text))).toBe(again);
  });

  it.each(['a,,b', '=b', 'a in b', 'a b', '!', 'a=b=c', 'a in (b', 'a=$', '-a'])('refuses "%s"', (text) => {
    expect(() => parseSelector(text)).toThrow('label selector');
  });
});

describe('validation', () => {
  it('names the field and what is wrong with it', () => {
    const selector = {
      matchLabels: { 'bad key': 'x', good: 'bad value!', [`p/${'n'.repeat(64)}`]: '' },
      matchExpressions: [
        { key: 'a', operator: 'In', values: [] },
        { key: 'b', operator: 'Exists', values: ['x'] },
        { key: 'UPPER.example/c', operator: 'Equals' },
      ],
    } as unknown as LabelSelector;
    expect(validateSelector(selector, 'spec.clusterSelector').map((problem) => problem.split(': ')[0])).toEqual([
      'spec.clusterSelector.matchLabels[bad key]',
      'spec.clusterSelector.matchLabels[good]',
      `spec.clusterSelector.matchLabels[p/${'n'.repeat(64)}]`,
      'spec.clusterSelector.matchExpressions[0].values',
      'spec.clusterSelector.matchExpressions[1].values',
      'spec.clusterSelector.matchExpressions[2].key',
      'spec.clusterSelector.matchExpressions[2].operator',
    ]);
  });

  it('finds nothing wrong with what the API takes', () => {
    const selector: LabelSelector = {
      matchLabels: { 'example.com/Name_1.x': 'A-b_c.9', empty: '' },
      matchExpressions: [{ key: 'k', operator: 'NotIn', values: ['', 'x'] }],
    };
    expect(validateSelector(selector, 'spec')).toEqual([]);
  });
});
