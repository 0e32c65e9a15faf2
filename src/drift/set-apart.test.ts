import { describe, expect, it } from 'vitest';
import { OPT_OUT_ANNOTATION, setApart } from './set-apart.ts';
import type { InventoryObject, JsonObject, LiveObject } from './types.ts';

function inventoryObject(annotations: JsonObject): InventoryObject {
  const id = { group: '', version: 'v1', kind: 'ConfigMap', name: 'x' };
  const wanted = { metadata: { name: 'x', annotations } };
  return { id, resource: undefined, wanted, nulls: [], order: 0, fromCrds: false };
}

function live(metadata: object): LiveObject {
  return { metadata: { name: 'x', ...metadata } };
}

const RELEASE = { 'meta.helm.sh/release-name': 'web', 'meta.helm.sh/release-namespace': 'ns' };

describe('an object that needs no comparison', () => {
  const ours = inventoryObject(RELEASE);

  it('is going', () => {
    expect(setApart(ours, live({ deletionTimestamp: '2026-01-01T00:00:00Z' }), [])).toMatchObject({
      state: 'Terminating',
    });
  });

  it('is taken out by its annotation, live or in the manifest, or by a rule for the whole object', () => {
    const annotations = { [OPT_OUT_ANNOTATION]: 'disabled' };
    const byAnnotation = { state: 'Excluded', by: 'annotation' };
    expect(setApart(ours, live({ annotations }), [])).toMatchObject(byAnnotation);
    expect(setApart(inventoryObject(annotations), live({}), [])).toMatchObject(byAnnotation);
    expect(setApart(ours, live({ annotations: { [OPT_OUT_ANNOTATION]: 'enabled' } }), [])).toBeUndefined();
    expect(setApart(ours, live({}), [['spec'], []])).toMatchObject({ state: 'Excluded', by: 'rule' });
  });

  it("is another release's", () => {
    const annotations = { ...RELEASE, 'meta.helm.sh/release-name': 'other' };
    expect(setApart(ours, live({ annotations }), [])).toMatchObject({ state: 'Foreign', owner: 'ns/other' });
    const elsewhere = { 'meta.helm.sh/release-namespace': 'elsewhere' };
    expect(setApart(ours, live({ annotations: elsewhere }), [])).toMatchObject({ owner: 'elsewhere/web' });
  });

  it('is no foreign one when its annotations are gone, or when it comes from crds/', () => {
    expect(setApart(ours, live({}), [])).toBeUndefined();
    expect(setApart(inventoryObject({}), live({ annotations: RELEASE }), [])).toBeUndefined();
  });
});
