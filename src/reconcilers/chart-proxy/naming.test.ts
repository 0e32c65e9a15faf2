import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { labelValue, releaseProxyName } from './naming.ts';

const hcp = { namespace: 'fleet', name: 'hcp' };
const DNS = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const LABEL = /^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$/;

describe('releaseProxyName', () => {
  it('reads as CAAPH names do, and is the same every time', () => {
    const name = releaseProxyName('nginx', hcp, { namespace: 'fleet', name: 'w1' });
    expect(name).toMatch(/^nginx-w1-[0-9a-f]{8}$/);
    expect(releaseProxyName('nginx', hcp, { namespace: 'fleet', name: 'w1' })).toBe(name);
  });

  it('differs between clusters, namespaces and HelmChartProxies', () => {
    const long = 'c'.repeat(200);
    const names = [
      releaseProxyName('nginx', hcp, { namespace: 'fleet', name: `${long}1` }),
      releaseProxyName('nginx', hcp, { namespace: 'fleet', name: `${long}2` }),
      releaseProxyName('nginx', { ...hcp, name: 'other' }, { namespace: 'fleet', name: `${long}1` }),
      releaseProxyName('nginx', { ...hcp, namespace: 'other' }, { namespace: 'other', name: `${long}1` }),
    ];
    expect(new Set(names).size).toBe(4);
  });

  it.each(['team/chart', 'Chart_Name', '///', 'x'.repeat(300), 'ünïcode'])('is a valid name for chart %s', (chart) => {
    const name = releaseProxyName(chart, hcp, { namespace: 'fleet', name: 'a.b.c' });
    expect(name).toMatch(DNS);
    expect(name.length).toBeLessThanOrEqual(63);
  });

  it('is valid for any chart and cluster name', () => {
    fc.assert(
      fc.property(fc.string(), fc.string({ maxLength: 253 }), (chart, cluster) => {
        const name = releaseProxyName(chart, hcp, { namespace: 'fleet', name: cluster });
        expect(name).toMatch(DNS);
        expect(name.length).toBeLessThanOrEqual(63);
      }),
    );
  });
});

describe('labelValue', () => {
  it('keeps what is valid', () => {
    expect(labelValue('my-hcp.1')).toEqual({ value: 'my-hcp.1', exact: true });
  });

  it('hashes what is too long, differently for different names (caaph W22)', () => {
    const [a, b] = [labelValue(`${'n'.repeat(70)}a`), labelValue(`${'n'.repeat(70)}b`)];
    expect(a.exact).toBe(false);
    expect(a.value).not.toBe(b.value);
    expect(a.value.length).toBeLessThanOrEqual(63);
  });

  it('is valid for any text', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 253 }), (text) => {
        const { value } = labelValue(text);
        expect(value).toMatch(LABEL);
        expect(value.length).toBeLessThanOrEqual(63);
      }),
    );
  });
});
