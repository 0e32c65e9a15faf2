import { expect, it } from 'vitest';
import { Inventories } from './inventories.ts';
import type { InventoryQuestion } from './inventories.ts';
import { C1, DriftWorld, KEY, configMap } from './world.test-support.ts';

function question(w: DriftWorld, includeCRDs = false): InventoryQuestion {
  const cluster = w.base.fleet.get(C1);
  const reader = w.parts.readers.of(cluster);
  const mark = reader.marks(KEY)[0];
  if (mark === undefined) throw new Error('there is no record');
  return { cluster, reader, release: KEY, mark, includeCRDs };
}

const call = { signal: new AbortController().signal };

it('reads a record once for as long as it is kept, and anew when asked to', async () => {
  const w = new DriftWorld();
  const inventories = new Inventories();
  const first = await inventories.of(question(w), call);
  expect(first).toMatchObject({ revision: 1, release: KEY });
  expect(await inventories.of(question(w), call)).toBe(first);
  expect(w.base.storage(C1).fetches).toBe(1);
  const renewed = await inventories.renew(question(w), call);
  expect(renewed).not.toBe(first);
  expect(await inventories.of(question(w), call)).toBe(renewed);
});

it('tells revisions, versions of a record, clusters, and with or without crds/ apart', async () => {
  const w = new DriftWorld();
  const inventories = new Inventories();
  const first = await inventories.of(question(w), call);
  expect(await inventories.of(question(w, true), call)).not.toBe(first);
  w.deploy(1, [configMap('other')]);
  const second = await inventories.of(question(w), call);
  expect(second?.objects.map(({ id }) => id.name)).toEqual(['other']);
  w.deploy(2, [configMap('third')]);
  expect((await inventories.of(question(w), call))?.revision).toBe(2);
});

it('has none of a record that is another by now', async () => {
  const w = new DriftWorld();
  const old = question(w);
  w.deploy(1);
  expect(await new Inventories().of(old, call)).toBeUndefined();
});

it('gives back what is too large to be kept', async () => {
  const large = { ...configMap('large'), data: { text: 'x'.repeat(12 * 1024 * 1024) } };
  const w = new DriftWorld({ documents: [large] });
  const inventories = new Inventories();
  expect((await inventories.of(question(w), call))?.objects).toHaveLength(1);
  await inventories.of(question(w), call);
  expect(w.base.storage(C1).fetches).toBe(2);
});
