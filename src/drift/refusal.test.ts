import { describe, expect, it } from 'vitest';
import type { Complaint, KubeError } from '../kube/index.ts';
import {
  ConflictError,
  ForbiddenError,
  InvalidError,
  NetworkError,
  NotFoundError,
  ServerError,
  TimedOutError,
  TooManyRequestsError,
  UnauthorizedError,
} from '../kube/index.ts';
import { asObject } from './dry-run.ts';
import { namesUnknownFields, refusalOf } from './refusal.ts';
import type { InventoryObject, JsonObject } from './types.ts';

function object(kind: string, wanted: JsonObject = {}): InventoryObject {
  return {
    id: { group: '', version: 'v1', kind, name: 's' },
    resource: undefined,
    wanted,
    nulls: [],
    order: 0,
    fromCrds: false,
  };
}

function invalid(...complaints: Complaint[]): KubeError {
  return new InvalidError('PATCH /x: it is invalid', { status: 422, reason: 'Invalid', complaints });
}

/** Messages as kube-apiserver 1.35 gave them. */
describe('what a server refuses', () => {
  it.each<[string, KubeError]>([
    ['conflict', new ConflictError('the object has been modified', { status: 409 })],
    ['conflict', invalid({ field: 'metadata.uid', text: 'field is immutable' })],
    ['conflict', new NotFoundError('configmaps "x" not found')],
    ['waiting', new NotFoundError('namespaces "nope" not found')],
    ['waiting', new NotFoundError('404 page not found', { notServed: true })],
    ['waiting', new ForbiddenError('because it is being terminated', { causes: ['NamespaceTerminating'] })],
    ['denied', new ForbiddenError('exceeded quota')],
    ['denied', new InvalidError("ValidatingAdmissionPolicy 'p' with binding 'p' denied request: no", { status: 422 })],
    ['denied', new ServerError('failed calling webhook "a": refused', { status: 500, reason: 'InternalError' })],
    ['no-dry-run', new InvalidError('admission webhook "x" does not support dry run', { status: 400 })],
    [
      'not-appliable',
      new ServerError('failed to create typed patch object (x): .env: duplicate entries for key [name="A"]'),
    ],
    ['not-appliable', new InvalidError('the body of the request was in an unknown format', { status: 415 })],
    ['immutable', invalid({ field: 'spec.template', text: '…"Status":{}}: field is immutable' })],
    ['immutable', invalid({ field: 'spec.clusterIPs[0]', text: 'Invalid value: ["None"]: may not change once set' })],
    ['immutable', invalid({ field: 'roleRef', text: 'cannot change roleRef' })],
    [
      'immutable',
      invalid({
        field: 'spec',
        text: "Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden",
      }),
    ],
    [
      'invalid',
      invalid({
        field: 'spec.strategy.rollingUpdate',
        text: "may not be specified when strategy `type` is 'Recreate'",
      }),
    ],
  ])('%s: %s', (kind, error) => {
    expect(refusalOf(error, object('ConfigMap'))).toMatchObject({ kind });
  });

  it.each<[Error]>([
    [new NetworkError('reset')],
    [new TimedOutError('late')],
    [new TooManyRequestsError('patience')],
    [new UnauthorizedError('who?')],
    [new ServerError('etcdserver: leader changed', { status: 500 })],
    [new TypeError('a mistake of ours')],
  ])('is not: %s', (error) => {
    expect(refusalOf(error, object('ConfigMap'))).toBeUndefined();
  });

  it('knows the error about unknown fields', () => {
    expect(namesUnknownFields(new ServerError('.spec.foo: field not declared in schema'))).toBe(true);
    expect(namesUnknownFields(new ServerError('down'))).toBe(false);
  });
});

describe('a message about a Secret', () => {
  const b64 = (text: string): string => Buffer.from(text).toString('base64');
  const secret = object('Secret', { data: { a: b64('correct-horse') } });
  const live = asObject({ metadata: { name: 's' }, data: { a: b64('battery-staple') } });

  function message(text: string, complaints: Complaint[] = []): string {
    return (
      refusalOf(new InvalidError(text, { status: 422, reason: 'Invalid', complaints }), secret, live)?.message ?? ''
    );
  }

  it.each([
    [`PATCH /api/v1/secrets/s: Secret "s" is invalid: data[a]: Invalid value: "short"`],
    [`denied request: not ${b64('battery-staple')}`],
    ['denied request: not battery-staple, but correct-horse'],
    ['Invalid value: "short\\"er'],
    [`Invalid value: {"a":"short"}… (Invalid 422)`],
    [`denied: battery-st… (Invalid 422)`],
  ])('holds no value of it: %s', (text) => {
    expect(message(text)).not.toMatch(/short|battery|horse|YmF0d|Y29yc/);
  });

  it('still says what is wrong', () => {
    expect(message('PATCH /x: Secret "s" is invalid: type: Invalid value: "x": field is immutable')).toBe(
      'Secret "s" is invalid: type: Invalid value: "***": field is immutable',
    );
    expect(message('Secret… (Invalid 422)', [{ field: 'data[a]', reason: 'FieldValueInvalid' }])).toContain('data[a]');
  });

  it('and one about anything else is bounded, its end kept', () => {
    const error = new InvalidError(`${'x'.repeat(2000)}: field is immutable`);
    const told = refusalOf(error, object('Job'))?.message ?? '';
    expect(told.length).toBeLessThanOrEqual(512);
    expect(told).toMatch(/field is immutable$/);
    const cut = new InvalidError('spec.template: Invalid value: {"la… (Invalid 422)', {
      complaints: [{ field: 'spec.template', text: '"x":{}}: field is immutable' }],
    });
    expect(refusalOf(cut, object('Job'))?.message).toContain('field is immutable');
  });
});
