import { describe, expect, it } from 'vitest';
import { complainedPath, undeclaredFields } from './typed-path.ts';
import type { JsonObject } from './types.ts';

/** Messages as kube-apiserver 1.35 gave them. */
const HEADER =
  'PATCH /apis/x: failed to create typed patch object (default/d; rbac.authorization.k8s.io/v1, Kind=Role): ';

const document: JsonObject = {
  metadata: { foo: 'x' },
  spec: {
    'a/b': 2,
    'a.b': { c: 1 },
    a: { b: { d: 1 } },
    nope: 1,
    list: [{ a: 'x', zz: 1 }],
    containers: [
      { name: 'c', bar: 1, ports: [{ containerPort: 1, what: 1 }] },
      { name: 'd]', bar: 1 },
    ],
  },
};

describe('fields that a server does not know', () => {
  it.each([
    ['.spec.a/b', ['spec', 'a/b']],
    ['.spec.a.b.c', ['spec', 'a.b', 'c']],
    ['.spec.a.b.d', ['spec', 'a', 'b', 'd']],
    ['.metadata.foo', ['metadata', 'foo']],
    ['.spec.list[0].zz', ['spec', 'list', 0, 'zz']],
    ['.spec.containers[name="d]"].bar', ['spec', 'containers', 1, 'bar']],
    [
      '.spec.containers[name="c"].ports[containerPort=1,protocol="TCP"].what',
      ['spec', 'containers', 0, 'ports', 0, 'what'],
    ],
  ])('a single one: %s', (text, path) => {
    expect(undeclaredFields(`${HEADER}${text}: field not declared in schema (HTTP 500)`, document)).toEqual([path]);
  });

  it('several', () => {
    const message = `${HEADER}errors:\n  .spec.list[0].zz: field not declared in schema\n  .spec.nope: field not declared in schema (HTTP 500)`;
    expect(undeclaredFields(message, document)).toEqual([
      ['spec', 'list', 0, 'zz'],
      ['spec', 'nope'],
    ]);
  });

  it('none where the document has no such field, or something else is wrong', () => {
    expect(undeclaredFields(`${HEADER}.spec.other: field not declared in schema`, document)).toEqual([]);
    expect(undeclaredFields(`${HEADER}.spec.containers[name="x"].bar: field not declared in schema`, document)).toEqual(
      [],
    );
    expect(undeclaredFields(`${HEADER}.spec.list: duplicate entries for key [name="A"]`, document)).toEqual([]);
  });
});

describe('a field that validation names', () => {
  it('is followed as far as the object has it', () => {
    expect(complainedPath('spec.containers[0].ports[0].what', document)).toEqual([
      'spec',
      'containers',
      0,
      'ports',
      0,
      'what',
    ]);
    expect(complainedPath('spec.containers[0].resources.requests', document)).toEqual(['spec', 'containers', 0]);
    expect(complainedPath('spec[a.b].c', document)).toEqual(['spec', 'a.b', 'c']);
  });
});
