import { describe, expect, it } from 'vitest';
import { INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { sortOut } from './duplicates.ts';
import { T0, T1, chartProxy, cluster, releaseProxy } from './objects.test-support.ts';

function proxy(
  name: string,
  changes: { at?: string; installed?: boolean; release?: string; going?: boolean } = {},
): HelmReleaseProxy {
  const made = releaseProxy(chartProxy(), cluster(), {
    name,
    uid: name,
    creationTimestamp: changes.at ?? T0,
    annotations: changes.installed === true ? { [INSTALLED_ANNOTATION]: 'true' } : {},
    ...(changes.going === true && { deletionTimestamp: T1 }),
  });
  return { ...made, spec: { ...made.spec, releaseName: changes.release ?? 'web' } };
}

const names = (proxies: readonly HelmReleaseProxy[]): string[] => proxies.map(({ metadata }) => metadata.name);

describe('sortOut', () => {
  type Expected = { keep?: string; remove: string[]; conflicting: string[] };
  const expected = (keep?: string, remove: string[] = [], conflicting: string[] = []): Expected => ({
    keep,
    remove,
    conflicting,
  });
  const own = { installed: true, release: 'x' };
  const cases: [string, HelmReleaseProxy[], Expected][] = [
    ['none', [], expected()],
    ['one', [proxy('a')], expected('a')],
    ['the older stays', [proxy('b', { at: T1 }), proxy('a')], expected('a', ['b'])],
    [
      'the installed stays, though younger',
      [proxy('a'), proxy('b', { at: T1, installed: true })],
      expected('b', ['a']),
    ],
    [
      'both installed the same release',
      [proxy('a', { installed: true }), proxy('b', { at: T1, installed: true })],
      expected('a', ['b']),
    ],
    [
      'each installed its own',
      [proxy('a', own), proxy('b', { at: T1, installed: true, release: 'y' })],
      expected('a', [], ['b']),
    ],
    ['the younger has no name yet', [proxy('a', own), proxy('b', { at: T1, release: '' })], expected('a', ['b'])],
    ['one on its way out does not count', [proxy('a', { going: true }), proxy('b', { at: T1 })], expected('b')],
    ['unless it is the only one', [proxy('a', { going: true })], expected('a')],
  ];
  it.each(cases)('%s', (_name, given, wanted) => {
    for (const order of [given, [...given].reverse()]) {
      const { keep, remove, conflicting } = sortOut(order);
      expect({ keep: keep?.metadata.name, remove: names(remove), conflicting: names(conflicting) }).toEqual(wanted);
    }
  });

  it('lets a person decide about one whose first install failed under another name', () => {
    const tried = { ...proxy('b', { at: T1, release: 'y' }), status: { status: 'failed', revision: 1 } };
    expect(names(sortOut([proxy('a', { installed: true }), tried]).conflicting)).toEqual(['b']);
  });
});
