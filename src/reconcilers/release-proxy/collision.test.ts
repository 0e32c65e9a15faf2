import { describe, expect, it } from 'vitest';
import { INSTALLED_ANNOTATION } from '../../api/index.ts';
import type { HelmReleaseProxy } from '../../api/index.ts';
import { collidesWith } from './collision.ts';

function claim(uid: string, created: string, installed = false): HelmReleaseProxy {
  return {
    apiVersion: '',
    kind: '',
    metadata: {
      name: uid,
      uid,
      creationTimestamp: created,
      annotations: installed ? { [INSTALLED_ANNOTATION]: 'true' } : undefined,
    },
    spec: { chartName: 'c', repoURL: 'r', clusterRef: {} },
  };
}

const early = '2026-01-01T00:00:00Z';
const late = '2026-01-02T00:00:00Z';

describe('collidesWith', () => {
  it.each([
    ['alone', claim('a', early), [], undefined],
    ['only itself is found', claim('a', early), [claim('a', early)], undefined],
    ['the older keeps it', claim('b', late), [claim('a', early)], 'a'],
    ['the older is not kept from it', claim('a', early), [claim('b', late)], undefined],
    ['of one age: by uid', claim('b', early), [claim('a', early)], 'a'],
    ['the one that installed it keeps it, though younger', claim('a', early), [claim('b', late, true)], 'b'],
    ['both installed it: the older', claim('b', late, true), [claim('a', early, true)], 'a'],
    ['three', claim('c', late), [claim('b', late), claim('a', early)], 'a'],
  ])('%s', (_name, proxy, others, owner) => {
    expect(collidesWith(proxy, others)?.metadata.uid).toBe(owner);
  });
});
