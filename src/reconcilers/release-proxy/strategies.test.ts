import { describe, expect, it } from 'vitest';
import { INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { continuousStrategy } from '../install/index.ts';
import { installOnceStrategy } from '../install-once/index.ts';
import { StrategyRegistry } from './strategies.ts';

function proxy(reconcileStrategy?: string, annotations?: Record<string, string>): HelmReleaseProxy {
  return {
    apiVersion: '',
    kind: '',
    metadata: { name: 'p', annotations },
    spec: { chartName: 'c', repoURL: 'r', clusterRef: {}, reconcileStrategy },
  };
}

describe('StrategyRegistry', () => {
  const registry = new StrategyRegistry([continuousStrategy, installOnceStrategy]);

  it.each([
    [undefined, continuousStrategy],
    ['', continuousStrategy],
    ['Continuous', continuousStrategy],
    ['InstallOnce', installOnceStrategy],
    ['Weekly', undefined],
  ])('%s', (name, expected) => {
    expect(registry.find(proxy(name))).toBe(expected);
  });

  it('names the known ones', () => {
    const error = registry.unknown(proxy('Weekly'));
    expect(error.code).toBe('UnknownStrategy');
    expect(error.message).toContain('"Weekly"');
    expect(error.message).toContain('Continuous, InstallOnce');
  });

  it('refuses two of one name', () => {
    expect(() => new StrategyRegistry([continuousStrategy, continuousStrategy])).toThrow('Continuous');
  });
});

describe('handing off', () => {
  const installed = { [INSTALLED_ANNOTATION]: '' };

  it('InstallOnce lets go once the annotation stands, whatever its value', () => {
    expect(installOnceStrategy.handedOff(proxy('InstallOnce'))).toBe(false);
    expect(installOnceStrategy.handedOff(proxy('InstallOnce', installed))).toBe(true);
  });

  it('Continuous never does', () => {
    expect(continuousStrategy.handedOff(proxy('Continuous', installed))).toBe(false);
  });
});
