import { describe, expect, it } from 'vitest';
import type { Condition } from '../api/index.ts';
import { aggregate, getCondition, setCondition, summarize } from './conditions.ts';

const T0 = new Date('2026-01-02T03:04:05.678Z');
const T1 = new Date('2026-01-02T04:00:00.999Z');

function ready(status: Condition['status'], message = ''): Condition {
  return { type: 'Ready', status, reason: 'X', message, lastTransitionTime: '2026-01-01T00:00:00Z' };
}

describe('setCondition', () => {
  it('puts Ready first, then the types in alphabetical order, with whole seconds', () => {
    let list = setCondition(undefined, { type: 'Zulu', status: 'True', reason: 'A', message: '' }, 3, T0);
    list = setCondition(list, { type: 'Alpha', status: 'True', reason: 'A', message: '' }, 3, T0);
    list = setCondition(list, { type: 'Ready', status: 'True', reason: 'A', message: '' }, 3, T0);
    expect(list.map((condition) => condition.type)).toEqual(['Ready', 'Alpha', 'Zulu']);
    expect(list[0]).toEqual({
      type: 'Ready',
      status: 'True',
      reason: 'A',
      message: '',
      lastTransitionTime: '2026-01-02T03:04:05Z',
      observedGeneration: 3,
    });
  });

  it('moves lastTransitionTime only with the status', () => {
    const first = setCondition(undefined, { type: 'A', status: 'False', reason: 'X', message: 'm' }, 1, T0);
    const second = setCondition(first, { type: 'A', status: 'False', reason: 'Y', message: 'n' }, 2, T1);
    const third = setCondition(second, { type: 'A', status: 'True', reason: 'Y', message: 'n' }, 2, T1);
    expect(second[0]?.lastTransitionTime).toBe('2026-01-02T03:04:05Z');
    expect(third[0]?.lastTransitionTime).toBe('2026-01-02T04:00:00Z');
  });

  it('returns the same array when nothing changes, and changes no array it is given', () => {
    const input = { type: 'A', status: 'False', reason: 'X', message: 'm' } as const;
    const first = setCondition(undefined, input, 1, T0);
    const copy = structuredClone(first);
    expect(setCondition(first, input, 1, T1)).toBe(first);
    expect(setCondition(first, input, 2, T1)).not.toBe(first);
    expect(first).toEqual(copy);
  });
});

describe('summarize', () => {
  const types = ['SpecsUpToDate', 'ProxiesReady'];
  type Status = Condition['status'] | undefined;
  const cases: [[Status, Status], { status: Status; reason: string; message: string }][] = [
    [['True', 'True'], { status: 'True', reason: 'InfoReported', message: '* SpecsUpToDate: m\n* ProxiesReady: m' }],
    [['True', 'False'], { status: 'False', reason: 'IssuesReported', message: '* ProxiesReady: m' }],
    [
      ['Unknown', 'False'],
      { status: 'False', reason: 'IssuesReported', message: '* SpecsUpToDate: m\n* ProxiesReady: m' },
    ],
    [['True', 'Unknown'], { status: 'Unknown', reason: 'UnknownReported', message: '* ProxiesReady: m' }],
    [
      ['True', undefined],
      { status: 'Unknown', reason: 'UnknownReported', message: '* ProxiesReady: Condition not yet reported' },
    ],
  ];
  it.each(cases)('%j', (statuses, expected) => {
    let list: Condition[] = [];
    for (const [index, status] of statuses.entries()) {
      if (status === undefined) continue;
      list = setCondition(list, { type: types[index] ?? '', status, reason: 'R', message: 'm' }, 1);
    }
    expect(getCondition(summarize(list, types, 1), 'Ready')).toMatchObject(expected);
  });

  it('leaves empty messages of true conditions out, and uses the reason of others', () => {
    let list = setCondition([], { type: types[0]!, status: 'True', reason: 'R1', message: '' }, 1);
    list = setCondition(list, { type: types[1]!, status: 'True', reason: 'R2', message: '' }, 1);
    expect(getCondition(summarize(list, types, 1), 'Ready')?.message).toBe('');
    list = setCondition(list, { type: types[1]!, status: 'False', reason: 'R2', message: '' }, 1);
    expect(getCondition(summarize(list, types, 1), 'Ready')?.message).toBe('* ProxiesReady: R2');
  });

  it('indents what is a list itself, as Cluster API does', () => {
    const message = '* HelmReleaseProxy a:\n  * HelmReleaseReady: no such chart';
    let list = setCondition([], { type: types[0]!, status: 'True', reason: 'R1', message: '' }, 1);
    list = setCondition(list, { type: types[1]!, status: 'False', reason: 'R2', message }, 1);
    expect(getCondition(summarize(list, types, 1), 'Ready')?.message).toBe(
      '* ProxiesReady:\n  * HelmReleaseProxy a:\n    * HelmReleaseReady: no such chart',
    );
  });
});

describe('aggregate', () => {
  it('is vacuously true without objects', () => {
    expect(aggregate([], 'HelmReleaseProxy')).toEqual({ status: 'True', reason: 'Ready', message: '' });
  });

  it('lists the sources of healthy objects, sorted', () => {
    const items = ['b', 'a'].map((name) => ({ name, condition: ready('True') }));
    expect(aggregate(items, 'HelmReleaseProxy')).toEqual({
      status: 'True',
      reason: 'InfoReported',
      message: ' (sources: HelmReleaseProxy/a, HelmReleaseProxy/b)',
    });
  });

  it('puts equal messages together, issues before unknowns', () => {
    const items = [
      { name: 'd' },
      { name: 'c', condition: ready('False', '* HelmReleaseReady: boom') },
      { name: 'a', condition: ready('False', '* HelmReleaseReady: boom') },
      { name: 'b', condition: ready('True') },
    ];
    expect(aggregate(items, 'HelmReleaseProxy')).toEqual({
      status: 'False',
      reason: 'IssuesReported',
      message:
        '* HelmReleaseProxies a, c:\n  * HelmReleaseReady: boom\n* HelmReleaseProxy d: Condition Ready not yet reported' +
        ' (sources: HelmReleaseProxy/a, HelmReleaseProxy/b, HelmReleaseProxy/c, ... (1 more))',
    });
  });

  it('stays small and the same for 1,000 objects in any order (caaph W4, W5)', () => {
    const items = Array.from({ length: 1000 }, (_, index) => ({
      name: `chart-with-a-long-name-cluster-with-a-long-name-${index}`,
      condition: ready(index % 2 === 0 ? 'True' : 'False', index % 2 === 0 ? '' : `${index % 10} ${'x'.repeat(5000)}`),
    }));
    const first = aggregate(items, 'HelmReleaseProxy');
    const second = aggregate([...items].reverse(), 'HelmReleaseProxy');
    expect(first).toEqual(second);
    expect(first.message.length).toBeLessThan(8000);
    expect(first.message).toContain('HelmReleaseProxies with other issues');
    expect(first.message).toContain('(997 more)');
  });

  it('keeps a summary over it within what the CRD takes', () => {
    const huge = Array.from({ length: 50 }, (_, index) => ({
      name: `p${index}`,
      condition: ready('False', Array.from({ length: 900 }, () => 'line').join('\n') + String(index)),
    }));
    const list = setCondition([], { type: 'P', ...aggregate(huge, 'HelmReleaseProxy') }, 1);
    expect(getCondition(summarize(list, ['P'], 1), 'Ready')?.message.length).toBeLessThan(32_768);
  });
});
