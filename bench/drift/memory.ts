/**
 * What it costs to track objects: bytes of heap per object, names included. Run:
 *   node --expose-gc bench/drift/memory.ts [objects]
 */
import { ClusterTracker } from '../../src/drift/index.ts';
import type { Inventory, InventoryObject } from '../../src/drift/index.ts';
import type { Discovery, Follower, KubeObject, WatchSet, WatchTarget } from '../../src/kube/index.ts';
import { createTelemetry } from '../../src/telemetry/index.ts';

const OBJECTS_PER_RELEASE = 100;

/** Of the product: more than this a hundred thousand objects must not cost each. */
const LIMIT_BYTES = 300;

/** Kinds as a chart has them. */
const KINDS: readonly (readonly [group: string, kind: string, plural: string])[] = [
  ['', 'ConfigMap', 'configmaps'],
  ['', 'Secret', 'secrets'],
  ['', 'Service', 'services'],
  ['', 'ServiceAccount', 'serviceaccounts'],
  ['apps', 'Deployment', 'deployments'],
];

const total = Number(process.argv[2] ?? 100_000);
const collect = globalThis.gc;
if (collect === undefined) throw new Error('run with --expose-gc');

const followers = new Map<string, Follower>();
const watches: Pick<WatchSet, 'follow' | 'release'> = {
  follow: (_owner: object, { resource }: WatchTarget, follower: Follower) => {
    followers.set(resource.plural, follower);
  },
  release: () => undefined,
};
const discovery: Discovery = {
  find: () => Promise.resolve(undefined),
  versions: () => Promise.resolve([]),
  invalidate: () => undefined,
};

/** Read from JSON text, as what comes from a server and from Helm's storage is. */
function inventoryOf(release: number): Inventory {
  const objects = Array.from({ length: OBJECTS_PER_RELEASE }, (_, index): InventoryObject => {
    const [group, kind, plural] = KINDS[index % KINDS.length] ?? ['', 'ConfigMap', 'configmaps'];
    return {
      id: { group, version: 'v1', kind, namespace: `team-${String(release)}-production`, name: nameOf(release, index) },
      resource: { group, version: 'v1', plural, namespaced: true },
      wanted: { data: { text: 'x'.repeat(500) } },
      nulls: [],
      order: index,
      fromCrds: false,
    };
  });
  const inventory: Inventory = {
    release: { namespace: 'ns', name: String(release) },
    revision: 1,
    objects,
    problems: [],
  };
  return JSON.parse(JSON.stringify(inventory)) as Inventory;
}

function nameOf(release: number, index: number): string {
  return `application-${String(release)}-component-${String(index)}`;
}

/** resourceVersions beyond 2^31, as an old cluster has. */
function liveOf(release: number, index: number): KubeObject {
  const text = JSON.stringify({
    metadata: {
      name: nameOf(release, index),
      namespace: `team-${String(release)}-production`,
      uid: `${String(release)}-${String(index)}`,
      resourceVersion: String(4_000_000_000 + release * OBJECTS_PER_RELEASE + index),
      managedFields: [
        { manager: 'helm', operation: 'Apply', time: '2026-01-01T00:00:00Z', fieldsV1: { 'f:data': { 'f:text': {} } } },
      ],
    },
  });
  return JSON.parse(text) as KubeObject;
}

async function heap(): Promise<number> {
  for (let round = 0; round < 4; round += 1) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    collect?.();
  }
  return process.memoryUsage().heapUsed;
}

const before = await heap();
const tracker = new ClusterTracker({
  cluster: 'bench',
  watches: watches as WatchSet,
  discovery,
  telemetry: createTelemetry(),
  helmManagers: new Set(['helm', 'manager']),
  onStir: () => undefined,
});
const releases = Math.ceil(total / OBJECTS_PER_RELEASE);
const started = performance.now();
for (let release = 0; release < releases; release += 1) {
  tracker.track(String(release), inventoryOf(release), { wide: false, keep: false });
}
for (const follower of followers.values()) follower.notice({ type: 'init' });
for (let release = 0; release < releases; release += 1) {
  for (const { id, index } of tracker.take(String(release))) {
    const live = liveOf(release, index);
    const plural = KINDS[index % KINDS.length]?.[2] ?? '';
    followers.get(plural)?.notice({ type: 'initApply', object: live });
    tracker.settle(String(release), id, { live, watch: [] });
  }
}
for (const follower of followers.values()) follower.notice({ type: 'initDone', resourceVersion: '5000000000' });
const seconds = (performance.now() - started) / 1000;
const objects = releases * OBJECTS_PER_RELEASE;
const perObject = ((await heap()) - before) / objects;
const left = Array.from({ length: releases }, (_, release) => tracker.take(String(release)).length);
const stirred = left.reduce((sum, count) => sum + count, 0);
tracker.close();
console.log(
  `${String(objects)} objects of ${String(releases)} releases: ${perObject.toFixed(0)} bytes per object ` +
    `(limit ${String(LIMIT_BYTES)}), tracked, listed and settled in ${seconds.toFixed(1)} s, ${String(stirred)} stirred`,
);
if (perObject > LIMIT_BYTES || stirred > 0) process.exitCode = 1;
