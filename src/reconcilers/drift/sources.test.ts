import { describe, expect, it } from 'vitest';
import { DRIFT_RETRY_ANNOTATION, PAUSED_ANNOTATION, WATCH_FILTER_LABEL } from '../../api/index.ts';
import type { HelmReleaseProxySpec } from '../../api/index.ts';
import type { Enqueuer } from '../../runtime/index.ts';
import { DriftSources } from './sources.ts';
import { C1, DriftWorld, KEY } from './world.test-support.ts';

interface Listening {
  readonly asked: string[];
  readonly sources: DriftSources;
  readonly deaf: () => void;
}

function listening(w: DriftWorld): Listening {
  const asked: string[] = [];
  const queue: Enqueuer = {
    enqueue: ({ name }, { priority = '', afterMs = 0 } = {}) => asked.push(`${name} ${priority} ${afterMs}`),
  };
  const sources = new DriftSources(w.parts, queue);
  const deaf = sources.listen();
  return { asked, sources, deaf };
}

/** What is asked for after the beginning. */
function since(w: DriftWorld): Listening {
  const all = listening(w);
  all.asked.length = 0;
  return all;
}

function spec(change: Partial<HelmReleaseProxySpec>): Parameters<DriftWorld['edit']>[0] {
  return (proxy) => ({ ...proxy, spec: { ...proxy.spec, ...change } });
}

describe('the beginning', () => {
  it('asks for a single release at once, of cache and fleet', () => {
    const { asked } = listening(new DriftWorld());
    expect(asked).toEqual(['p resync 0', 'p resync 0']);
  });

  it('spreads many over some time, in proportion, and asks for those alone that are concerned', () => {
    const w = new DriftWorld({ mode: 'Disabled' });
    for (let index = 0; index < 10; index++) {
      w.base.addProxy(`q${index}`, { releaseName: `q${index}`, driftDetection: { mode: 'Warn' } });
    }
    const { asked } = listening(w);
    expect(asked).toHaveLength(20);
    expect(new Set(asked.map((text) => text.split(' ')[2]))).toEqual(new Set(['100']));
    expect(asked.some((text) => text.startsWith('p '))).toBe(false);
  });
});

describe('an object', () => {
  it('is looked at when it appears, its spec changes, somebody asks, or it is paused', () => {
    const w = new DriftWorld();
    const { asked } = since(w);
    w.base.addProxy('q', { releaseName: 'q' });
    w.ask({ mode: 'Warn' });
    w.annotate({ [DRIFT_RETRY_ANNOTATION]: 'again' });
    w.annotate({ [DRIFT_RETRY_ANNOTATION]: 'again', 'example.com/other': 'x' });
    expect(asked).toEqual(['q drift 0', 'p drift 0', 'p drift 0']);
  });

  it('is not for what a pass writes', async () => {
    const w = new DriftWorld();
    const { asked } = since(w);
    await w.pass();
    expect(w.inSync()).toContain('True');
    expect(asked).toEqual([]);
  });

  it('is not while drift detection is off, but to take back what was said', async () => {
    const w = new DriftWorld({ mode: 'Disabled' });
    const { asked } = since(w);
    w.edit(spec({ values: 'a: 1' }));
    expect(asked).toEqual([]);
    w.ask({ mode: 'Warn' });
    await w.pass();
    w.ask({ mode: 'Disabled' });
    expect(asked).toHaveLength(2);
    await w.pass();
    w.edit(spec({ values: 'a: 2' }));
    expect(asked).toHaveLength(2);
  });

  it('that is paused with a session is looked at once, to end its watches', async () => {
    const w = new DriftWorld();
    await w.pass();
    const { asked } = since(w);
    w.annotate({ [PAUSED_ANNOTATION]: '' });
    expect(asked).toEqual(['p drift 0']);
  });

  it('that is deleted is not watched any more', async () => {
    const w = new DriftWorld();
    since(w);
    await w.pass();
    w.base.proxies.remove('fleet', 'p');
    expect(w.tracker.closed).toBe(true);
    expect(w.parts.sessions.size).toBe(0);
  });

  it('that goes leaves its release to another that names it', () => {
    const w = new DriftWorld();
    w.base.addProxy('q');
    const { asked } = since(w);
    w.base.proxies.remove('fleet', 'p');
    expect(asked).toEqual(['q drift 0']);
  });

  it('of another manager is none of ours', () => {
    const w = new DriftWorld();
    const { deps } = w.parts;
    const parts = { ...w.parts, deps: { ...deps, options: { ...deps.options, watchFilter: 'mine' } } };
    const asked: string[] = [];
    new DriftSources(parts, { enqueue: ({ name }) => asked.push(name) }).listen();
    w.base.addProxy('q', { releaseName: 'q' }, { metadata: { labels: { [WATCH_FILTER_LABEL]: 'mine' } } });
    expect(asked).toEqual(['q']);
  });
});

describe('a release', () => {
  it('is looked at when its records change and when Helm lets go of it', async () => {
    const w = new DriftWorld();
    await w.pass();
    const { asked } = since(w);
    w.deploy(2);
    expect(asked).toEqual(['p drift 0']);
    const unlock = await w.parts.locks.lock(C1, KEY, new AbortController().signal);
    unlock();
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toHaveLength(2);
  });

  it('is looked at first when its objects stir, and the time of that is kept', async () => {
    const w = new DriftWorld();
    await w.pass();
    const { asked, sources } = since(w);
    const began = w.base.nowMs;
    sources.stirred('uid of p');
    w.base.nowMs += 70;
    sources.stirred('uid of p');
    expect(asked).toEqual(['p drift 0', 'p drift 0']);
    expect(w.parts.sessions.find('uid of p')?.takeStirredAt(w.base.nowMs)).toBe(began);
    sources.stirred('uid of nobody');
    expect(asked).toHaveLength(2);
  });
});

describe('a cluster', () => {
  it('that is paused or unpaused has its releases looked at; other changes are nothing', () => {
    const w = new DriftWorld();
    const { asked } = since(w);
    w.base.addCluster('c1', { paused: false });
    expect(asked).toEqual([]);
    w.base.clusters.put({ metadata: { namespace: 'fleet', name: 'c1' }, spec: { paused: true } });
    w.base.clusters.put({ metadata: { namespace: 'fleet', name: 'c1' }, spec: {} });
    expect(asked).toEqual(['p resync 0']);
  });

  it('whose engagement ends takes tracker and sessions along, and not its successor’s', async () => {
    const w = new DriftWorld();
    const { sources } = since(w);
    await w.pass();
    const first = w.base.fleet.get(C1);
    w.addCluster();
    await w.pass();
    sources.disengaged(first);
    expect(w.tracker.closed).toBe(false);
    expect(w.parts.sessions.size).toBe(1);
    sources.disengaged(w.base.fleet.get(C1));
    expect(w.tracker.closed).toBe(true);
    expect(w.parts.sessions.size).toBe(0);
  });
});

it('hears nothing any more once it was told to stop', () => {
  const w = new DriftWorld();
  const { asked, deaf } = since(w);
  deaf();
  w.ask({ mode: 'Warn' });
  w.deploy(2);
  expect(asked).toEqual([]);
  expect(w.base.fleet.awares.size).toBe(0);
});
