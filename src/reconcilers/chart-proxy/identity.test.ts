import { describe, expect, it } from 'vitest';
import { WORKLOAD_CLUSTER_UID_ANNOTATION } from '../../api/index.ts';
import { silentLogger } from '../../telemetry/index.ts';
import { installOnceStrategy } from '../install-once/index.ts';
import { decide } from './decide.ts';
import type { Observed } from './decide.ts';
import { askAgainMs, identified } from './identity.ts';
import { chartProxy, cluster } from './objects.test-support.ts';
import { INSTALLED } from './world.test-support.ts';

const context = { signal: new AbortController().signal, log: silentLogger };

/** Handed off, and its Cluster object is another than the one noted: who is behind it? */
function moved(engaged = false): Observed {
  const hcp = chartProxy({ reconcileStrategy: 'InstallOnce' });
  return {
    chartProxy: hcp,
    cluster: { ...cluster('w1'), metadata: { ...cluster('w1').metadata, uid: 'new' } },
    selected: true,
    proxy: {
      apiVersion: 'v1',
      kind: 'HelmReleaseProxy',
      metadata: {
        name: 'p',
        namespace: 'fleet',
        annotations: { ...INSTALLED.annotations, [WORKLOAD_CLUSTER_UID_ANNOTATION]: 'workload' },
      },
      spec: {
        ...hcp.spec,
        clusterRef: { name: 'w1', namespace: 'fleet', uid: 'old' },
        reconcileStrategy: 'InstallOnce',
      },
    },
    strategy: installOnceStrategy,
    workloadUid: undefined,
    engaged,
  };
}

describe('a placement on a cluster that another replica serves', () => {
  it.each([
    ['workload', 'adopt'],
    ['another', 'delete'],
  ])('asks the cluster who it is: %s → %s', async (uid, action) => {
    expect(decide(moved()).type).toBe('wait');
    const names: string[] = [];
    const observed = await identified(
      moved(),
      async (name) => {
        names.push(name);
        return Promise.resolve(uid);
      },
      context,
    );
    expect(names).toEqual(['fleet/w1']);
    expect(decide(observed).type).toBe(action);
    expect(askAgainMs(observed)).toBeUndefined();
  });

  it('waits and asks again when the cluster does not answer', async () => {
    const observed = await identified(moved(), async () => Promise.reject(new Error('no answer')), context);
    expect(decide(observed).type).toBe('wait');
    expect(askAgainMs(observed)).toBe(60_000);
  });

  it('asks nobody where that decides nothing, or where there are no other replicas', async () => {
    const never = async (): Promise<never> => Promise.reject(new Error('not expected'));
    const engaged = moved(true);
    expect(await identified(engaged, never, context)).toBe(engaged);
    const alone = moved();
    expect(await identified(alone, undefined, context)).toBe(alone);
  });
});
