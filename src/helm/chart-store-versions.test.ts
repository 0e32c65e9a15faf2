import { describe, expect, it } from 'vitest';
import { chooseVersion, isExactVersion, newestVersions } from './chart-store-versions.ts';

const AVAILABLE = [
  '0.2.3',
  '0.2.9',
  '1.0.0',
  '1.2.3-rc.1',
  '1.2.3',
  '1.2.4-beta',
  '1.3.0',
  'v2.0.0',
  '2.1.0-0',
  '11.0.0',
  '11.1.5',
  'junk',
];

describe('chooseVersion', () => {
  // Compared with Masterminds/semver 3.5.0, of Helm 3.22, over two thousand ranges; these are the kinds.
  it.each([
    ['', '11.1.5'],
    ['*', '11.1.5'],
    ['>0.0.0-0', '11.1.5'],
    ['1.2.3', '1.2.3'],
    ['=1.2.3', '1.2.3'],
    ['v1.2.3', '1.2.3'],
    ['2.0.0', 'v2.0.0'],
    ['1.2', '1.2.3'],
    ['1.2.x', '1.2.3'],
    ['1.x', '1.3.0'],
    ['1', '1.3.0'],
    ['^1.0', '1.3.0'],
    ['^0.2.3', '0.2.9'],
    ['~1.2.3', '1.2.3'],
    ['~>1.2', '1.2.3'],
    ['<11', 'v2.0.0'],
    ['<=11', '11.1.5'],
    ['<=11.0', '11.0.0'],
    ['>11.1', undefined],
    ['>11', undefined],
    ['>=11.1.6', undefined],
    ['>= 1, < 1.3', '1.2.3'],
    ['>=1 <1.3', '1.2.3'],
    ['!=11.1.5, <12', '11.0.0'],
    ['!=11.x', 'v2.0.0'],
    ['1.0 - 1.2', '1.2.3'],
    ['^0.2 || ~1.0', '1.0.0'],
    // A pre-release fits where a condition of its group names one, and then in all of the group.
    ['>=1.2.3-0, <1.3.0', '1.2.4-beta'],
    ['~1.2.3-0', '1.2.4-beta'],
    ['>=2.0.0-0 <11', '2.1.0-0'],
    ['^1.2.4', '1.3.0'],
    ['1.2.4-beta', '1.2.4-beta'],
    ['junk', 'junk'],
  ])('%j is %s', (wanted, expected) => {
    expect(chooseVersion(wanted, AVAILABLE)).toBe(expected);
  });

  it('takes the very text first', () => {
    expect(chooseVersion('1.2', ['1.2.9', '1.2'])).toBe('1.2');
    expect(chooseVersion('1.0.0', ['v1.0.0', '1.0.0+a', '1.0.0'])).toBe('1.0.0');
  });

  it('prefers later build metadata, always the same', () => {
    expect(chooseVersion('1.0.0', ['1.0.0+b', '1.0.0+c', '1.0.0+a'])).toBe('1.0.0+c');
  });

  it.each(['latest', '>', '>=1.0.0<2.0.0', ', >1', '1.2.3.4', '>>1', '|| 1', '1'.repeat(600)])(
    '%j is refused',
    (wanted) => {
      expect(() => chooseVersion(wanted, ['1.0.0'])).toThrow(
        expect.objectContaining({ code: 'VersionInvalid' }) as Error,
      );
    },
  );
});

it('isExactVersion tells one version from a range', () => {
  expect(['1.2.3', 'v1.2.3', '1.2.3-rc.1+b'].map(isExactVersion)).toEqual([true, true, true]);
  expect(['', '1.2', '^1.2.3', '1.2.3 - 2', '1.x', '1.2.3, 1'].map(isExactVersion)).toEqual(Array(6).fill(false));
});

it('newestVersions are sorted by meaning', () => {
  expect(newestVersions(['1.9.0', '1.10.0', 'junk', '1.10.0-rc'], 2)).toEqual(['1.10.0', '1.10.0-rc']);
});
