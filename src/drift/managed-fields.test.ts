import { expect, it } from 'vitest';
import type { ManagedFieldsEntry } from '../kube/index.ts';
import {
  authorOf,
  foreignWatch,
  hasManagedFields,
  ownedByApply,
  ownedOnlyByUnknown,
  ownersOf,
  ownersWithin,
} from './managed-fields.ts';

const HELM = new Set(['helm', 'manager']);

function entry(manager: string, fieldsV1: Record<string, unknown>, more: ManagedFieldsEntry = {}): ManagedFieldsEntry {
  return { manager, operation: 'Update', time: '2026-01-01T00:00:00Z', fieldsV1, ...more };
}

function live(managedFields: ManagedFieldsEntry[], fields: Record<string, unknown> = {}) {
  return { metadata: { name: 'web', managedFields }, ...fields };
}

const CONTAINERS = {
  spec: {
    replicas: 5,
    template: {
      spec: {
        containers: [
          { name: 'side', image: 'side:1' },
          { name: 'web', image: 'web:2', ports: [{ containerPort: 80, protocol: 'TCP' }], args: ['-v'] },
        ],
      },
    },
  },
};

function inContainer(name: string, fields: Record<string, unknown>): Record<string, unknown> {
  return { 'f:spec': { 'f:template': { 'f:spec': { 'f:containers': { [`k:{"name":"${name}"}`]: fields } } } } };
}

const WEB = ['spec', 'template', 'spec', 'containers', 1];

it('finds owners through the keys of lists, wherever the element stands', () => {
  const object = live(
    [
      entry('helm', inContainer('web', { '.': {}, 'f:name': {}, 'f:args': {} }), { operation: 'Apply' }),
      entry('kubectl-edit', inContainer('web', { 'f:image': {} })),
      entry('injector', inContainer('side', { '.': {}, 'f:image': {} })),
    ],
    CONTAINERS,
  );
  expect(ownersOf(object, [...WEB, 'image'])).toEqual([
    { manager: 'kubectl-edit', operation: 'Update', time: '2026-01-01T00:00:00Z' },
  ]);
  expect(ownersOf(object, [...WEB, 'args', 0]).map(({ manager }) => manager)).toEqual(['helm']);
  expect(ownersOf(object, ['spec', 'replicas'])).toEqual([]);
  expect(ownersWithin(object, WEB).map(({ manager }) => manager)).toEqual(['helm', 'kubectl-edit']);
});

it('reads keys of several fields, values of sets, and positions', () => {
  const object = live(
    [
      entry('a', inContainer('web', { 'f:ports': { 'k:{"containerPort":80,"protocol":"TCP"}': { '.': {} } } })),
      entry('b', inContainer('web', { 'f:ports': { 'k:{"containerPort":80,"protocol":"UDP"}': { '.': {} } } })),
      entry('c', { 'f:metadata': { 'f:finalizers': { '.': {}, 'v:"x/y"': {} } } }),
      entry('d', { 'f:list': { 'i:1': {} } }),
    ],
    { ...CONTAINERS, list: ['p', 'q'] },
  );
  const withFinalizers = { ...object, metadata: { ...object.metadata, finalizers: ['a/b', 'x/y'] } };
  expect(ownersOf(object, [...WEB, 'ports', 0]).map(({ manager }) => manager)).toEqual(['a']);
  expect(ownersOf(withFinalizers, ['metadata', 'finalizers', 1]).map(({ manager }) => manager)).toEqual(['c']);
  expect(ownersOf(withFinalizers, ['metadata', 'finalizers', 0])).toEqual([]);
  expect(ownersOf(object, ['list', 1]).map(({ manager }) => manager)).toEqual(['d']);
});

it('gives a field below an empty map to who put it there, not to who wrote the empty map', () => {
  const object = live(
    [
      entry('helm', { 'f:spec': { 'f:emptyDir': {} } }),
      entry('kubectl-edit', { 'f:spec': { 'f:emptyDir': { 'f:medium': {} } } }),
    ],
    { spec: { emptyDir: { medium: 'Memory' } } },
  );
  expect(authorOf(object, ['spec', 'emptyDir', 'medium'], HELM)?.manager).toBe('kubectl-edit');
});

it('names the newest other manager as author, with its subresource', () => {
  const replicas = { 'f:spec': { 'f:replicas': {} } };
  const object = live(
    [
      entry('early', replicas, { operation: 'Apply' }),
      entry('kubectl', replicas, { time: '2026-01-02T00:00:00Z', subresource: 'scale' }),
    ],
    CONTAINERS,
  );
  expect(authorOf(object, ['spec', 'replicas'], HELM)).toEqual({
    manager: 'kubectl',
    operation: 'Update',
    time: '2026-01-02T00:00:00Z',
    subresource: 'scale',
  });
});

it.each<[string, ManagedFieldsEntry[]]>([
  ['nobody owns the field', [entry('kubectl-edit', { 'f:spec': { 'f:other': {} } })]],
  ['Helm owns it', [entry('manager', { 'f:spec': { 'f:replicas': {} } })]],
  [
    'Helm owns it as well as another',
    [entry('helm', { 'f:spec': { 'f:replicas': {} } }), entry('other', { 'f:spec': { 'f:replicas': {} } })],
  ],
  [
    'two own it since the same second',
    [entry('one', { 'f:spec': { 'f:replicas': {} } }), entry('two', { 'f:spec': { 'f:replicas': {} } })],
  ],
  ['the server does not know who', [entry('before-first-apply', { 'f:spec': { 'f:replicas': {} } })]],
  ['only a status update has it', [entry('kcm', { 'f:spec': { 'f:replicas': {} } }, { subresource: 'status' })]],
  ['the object has no managedFields', []],
])('names no author where %s', (_, entries) => {
  expect(authorOf(live(entries, CONTAINERS), ['spec', 'replicas'], HELM)).toBeUndefined();
});

it('names as author of a map, which nobody owns as such, who owns something in it', () => {
  const object = live(
    [
      entry('helm', { 'f:data': { 'f:a': {} } }),
      entry('kubectl-patch', { 'f:data': { 'f:b': {} } }, { time: '2026-01-03T00:00:00Z' }),
    ],
    { data: { a: '1', b: '2' } },
  );
  expect(authorOf(object, ['data'], HELM)?.manager).toBe('kubectl-patch');
});

it('lists the other managers of fields, for the watch', () => {
  const object = live(
    [
      entry('helm', { 'f:data': { 'f:a': {} } }),
      entry('zed', { 'f:data': { 'f:b': {} } }),
      entry('abe', { 'f:data': { 'f:b': {} } }),
      entry('abe', { 'f:data': { 'f:c': {} } }, { operation: 'Apply' }),
      entry('kcm', { 'f:data': { 'f:b': {} } }, { subresource: 'status' }),
    ],
    { data: { a: '1', b: '2', c: '3' } },
  );
  expect(foreignWatch(object, [['data', 'a']], HELM)).toEqual([]);
  expect(foreignWatch(object, [['data', 'a'], ['data', 'b']], HELM)).toEqual(['abe', 'zed']); // prettier-ignore
});

it('tells what a server-side apply owns, also above and below', () => {
  const object = live(
    [entry('helm', { 'f:data': { 'f:a': {} } }, { operation: 'Apply' }), entry('helm', { 'f:data': { 'f:b': {} } })],
    { data: { a: '1', b: '2' } },
  );
  const applied = (...path: string[]): boolean => ownedByApply(object, path, 'helm');
  expect([applied('data'), applied('data', 'a'), applied('data', 'b')]).toEqual([true, true, false]);
});

it('lists what was put in by hand: leaves, and whole elements of lists', () => {
  const object = live(
    [
      entry('helm', {
        'f:metadata': { 'f:labels': { '.': {}, 'f:app': {} } },
        ...inContainer('web', { '.': {}, 'f:image': {} }),
      }),
      entry('kubectl-edit', {
        'f:metadata': { 'f:labels': { 'f:by-hand': {} }, 'f:annotations': { '.': {}, 'f:gone': {} } },
        'f:spec': {
          'f:template': {
            'f:spec': {
              'f:containers': {
                'k:{"name":"web"}': { 'f:args': {}, 'f:image': {} },
                'k:{"name":"side"}': { '.': {}, 'f:name': {}, 'f:image': {} },
              },
            },
          },
        },
      }),
      entry('kube-controller-manager', { 'f:spec': { 'f:replicas': {} } }),
      entry('autoscaler', { 'f:spec': { 'f:replicas': {} } }, { subresource: 'scale' }),
    ],
    CONTAINERS,
  );
  const labelled = { ...object, metadata: { ...object.metadata, labels: { app: 'x', 'by-hand': 'y' } } };
  expect(ownedOnlyByUnknown(labelled, HELM)).toEqual([
    ['metadata', 'labels', 'by-hand'],
    [...WEB, 'args'],
    ['spec', 'template', 'spec', 'containers', 0],
  ]);
});

it('does not take an element as put in whole when a controller owns something in it', () => {
  const object = live(
    [
      entry('kubectl-edit', inContainer('side', { '.': {}, 'f:name': {}, 'f:image': {} })),
      entry('kubelet', inContainer('side', { 'f:image': {} })),
    ],
    CONTAINERS,
  );
  expect(ownedOnlyByUnknown(object, HELM)).toEqual([['spec', 'template', 'spec', 'containers', 0, 'name']]);
});

it('knows nothing of an object without managedFields', () => {
  expect(hasManagedFields({ metadata: { name: 'x' } })).toBe(false);
  expect(hasManagedFields(live([]))).toBe(false);
  expect(hasManagedFields(live([entry('helm', {})]))).toBe(true);
});

it('passes over what is no field set', () => {
  const odd = [entry('odd', { 'f:list': { 'k:no json': {}, 'x:?': {} } }), { manager: 'bare' }];
  expect(ownersOf(live(odd, { list: [{ a: 1 }] }), ['list', 0])).toEqual([]);
  expect(ownedOnlyByUnknown(live(odd, { list: [{ a: 1 }] }), HELM)).toEqual([]);
});
