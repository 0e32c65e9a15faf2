import { expect, it } from 'vitest';
import type { KubeObject, ManagedFieldsEntry, ObjectMeta } from '../kube/index.ts';
import { canWriteUnseen, markOf, restOf } from './mark.ts';
import type { MarkScope } from './mark.ts';

const NARROW: MarkScope = { helm: new Set(['helm', 'manager']), also: [], wide: false };
const HELMS: ManagedFieldsEntry = {
  manager: 'helm',
  operation: 'Apply',
  apiVersion: 'v1',
  time: '2026-01-01T00:00:00Z',
  fieldsV1: { 'f:data': { 'f:a': {}, 'f:b': {} } },
};

function object(entries: ManagedFieldsEntry[], metadata: Partial<ObjectMeta> = {}): KubeObject {
  return { metadata: { name: 'x', uid: 'u1', resourceVersion: '7', managedFields: entries, ...metadata } };
}

const before = markOf(object([HELMS]), NARROW);

function other(manager: string, more: ManagedFieldsEntry = {}): ManagedFieldsEntry {
  return { manager, operation: 'Update', apiVersion: 'v1', time: '2026-01-01T00:00:05Z', fieldsV1: {}, ...more };
}

it.each<[string, KubeObject]>([
  ['a field left it', object([{ ...HELMS, fieldsV1: { 'f:data': { 'f:a': {} } } }])],
  ['the same manager wrote again', object([{ ...HELMS, time: '2026-01-01T00:00:01Z' }])],
  ['it became another operation', object([{ ...HELMS, operation: 'Update' }])],
  ['a second entry of Helm’s came', object([HELMS, other('manager')])],
  ['the object is another one', object([HELMS], { uid: 'u2' })],
  ['the object is going', object([HELMS], { deletionTimestamp: '2026-01-01T00:00:00Z' })],
  [
    'it was taken out',
    object([HELMS], {
      annotations: { 'helmreleaseproxy.addons.cluster.x-k8s.io/drift-detection': 'disabled' },
    }),
  ],
])('is another mark when %s', (_, changed) => {
  expect(markOf(changed, NARROW)).not.toBe(before);
});

it.each<[string, KubeObject]>([
  ['another manager has an entry', object([HELMS, other('kubectl-annotate')])],
  ['a status was written, even by Helm’s manager', object([HELMS, other('manager', { subresource: 'status' })])],
  ['the version moved', object([HELMS], { resourceVersion: '8', generation: 3 })],
  ['an annotation or label came', object([HELMS], { annotations: { a: 'b' }, labels: { c: 'd' } })],
])('is the same mark when %s', (_, changed) => {
  expect(markOf(changed, NARROW)).toBe(before);
});

it('has the entries of managers that are named', () => {
  const scope = { ...NARROW, also: ['autoscaler'] };
  const one = markOf(object([HELMS, other('autoscaler')]), scope);
  expect(markOf(object([HELMS, other('autoscaler'), other('stranger')]), scope)).toBe(one);
  expect(markOf(object([HELMS, other('autoscaler', { time: '2026-01-01T00:00:09Z' })]), scope)).not.toBe(one);
});

it('has everybody’s entries but those of status and of known controllers when it is wide', () => {
  const scope = { ...NARROW, wide: true };
  const one = markOf(object([HELMS]), scope);
  expect(markOf(object([HELMS, other('kubectl-edit')]), scope)).not.toBe(one);
  expect(markOf(object([HELMS, other('kube-controller-manager')]), scope)).toBe(one);
  expect(markOf(object([HELMS, other('operator', { subresource: 'status' })]), scope)).toBe(one);
});

it('is another mark with every version where there are no managedFields', () => {
  const one = markOf(object([], { resourceVersion: '1' }), NARROW);
  expect(markOf(object([], { resourceVersion: '2' }), NARROW)).not.toBe(one);
  expect(markOf(object([], { resourceVersion: '1' }), NARROW)).toBe(one);
});

it('is a safe integer and never 0', () => {
  for (let uid = 0; uid < 1_000; uid += 1) {
    const mark = markOf(object([HELMS], { uid: String(uid) }), NARROW);
    expect(Number.isSafeInteger(mark) && mark > 0).toBe(true);
  }
});

it('gives the rest to whoever is not in the mark, status included', () => {
  const rest = restOf(object([HELMS]), NARROW);
  expect(restOf(object([{ ...HELMS, time: '2026-01-02T00:00:00Z' }]), NARROW)).toBe(rest);
  expect(restOf(object([HELMS, other('manager', { subresource: 'status' })]), NARROW)).not.toBe(rest);
  expect(restOf(object([HELMS, other('kubectl-edit')]), NARROW)).not.toBe(rest);
});

it('knows who may write without a trace: who wrote last, in whole seconds, and who scales', () => {
  const unseen = (...others: ManagedFieldsEntry[]): boolean => canWriteUnseen(object([HELMS, ...others]), NARROW);
  expect(unseen()).toBe(true);
  expect(unseen(other('kubectl-edit'))).toBe(false);
  expect(unseen(other('kubectl-edit', { time: HELMS.time }))).toBe(true);
  expect(unseen(other('kcm', { subresource: 'status' }))).toBe(false);
  expect(unseen(other('helm', { subresource: 'scale', time: undefined }), other('late'))).toBe(true);
  expect(unseen(other('kubectl', { subresource: 'scale', time: undefined }), other('late'))).toBe(false);
});
