import { describe, expect, it, vi } from 'vitest';
import {
  AlreadyExistsError,
  ConflictError,
  ForbiddenError,
  InvalidError,
  NetworkError,
  NotFoundError,
  ServerError,
} from '../kube/index.ts';
import { correctableFields, correctObject } from './corrector.ts';
import { deploymentOf, fakeClient, liveOf, policyOf } from './fake-client.test-support.ts';
import type { FieldDrift, JsonObject, LiveObject, Verdict, Path } from './types.ts';

const MISSING = { state: 'Missing' } as const;
const policy = policyOf();

function modified(live: LiveObject, ...fields: FieldDrift[]): Extract<Verdict, { state: 'Modified' }> {
  return { state: 'Modified', live, watch: [], fields, applicable: true };
}

function changed(path: Path, wanted: FieldDrift['wanted'], live: FieldDrift['live']): FieldDrift {
  return { change: 'changed', path, wanted, live };
}

const duplicates = new ServerError('failed to create typed patch object (x): .x: duplicate entries for key [name="a"]');

describe('making a missing object', () => {
  const object = deploymentOf({ replicas: 2 });

  it('applies it whole, ignored fields too, where nothing is', async () => {
    const made = liveOf({ replicas: 2 });
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(made) });
    const ignoring = policyOf({ ignore: [{ paths: ['/spec/replicas'] }] });
    expect(await correctObject(client, object, MISSING, { policy: ignoring })).toEqual({
      outcome: 'corrected',
      live: made,
      created: true,
    });
    const [, document, options] = client.apply.mock.calls[0]!;
    expect(document).toMatchObject({ spec: { replicas: 2 }, metadata: { resourceVersion: '1' } });
    expect(options).toMatchObject({ fieldManager: 'helm', force: true });
    expect(options.dryRun).not.toBe(true);
    expect(object.wanted['metadata']).not.toHaveProperty('resourceVersion');
  });

  it.each([
    ['conflict', new ConflictError('it is there')],
    ['waiting', new NotFoundError('namespaces "shop" not found')],
    ['waiting', new ForbiddenError('being terminated', { causes: ['NamespaceTerminating'] })],
    ['waiting', new NotFoundError('404 page not found', { notServed: true })],
    ['refused', new ForbiddenError('exceeded quota')],
    ['refused', new InvalidError('no', { status: 422, complaints: [{ field: 'spec.x', text: 'no' }] })],
  ])('%s: %s', async (outcome, error) => {
    const client = fakeClient({ apply: vi.fn().mockRejectedValue(error) });
    expect(await correctObject(client, object, MISSING, { policy })).toMatchObject({ outcome });
  });

  it('creates what cannot be applied', async () => {
    const made = liveOf({ replicas: 2 });
    const apply = vi.fn().mockRejectedValue(duplicates);
    const client = fakeClient({ apply, create: vi.fn().mockResolvedValue(made) });
    expect(await correctObject(client, object, MISSING, { policy })).toMatchObject({
      outcome: 'corrected',
      created: true,
    });
    expect(client.create.mock.calls[0]?.[2]).toMatchObject({ fieldManager: 'helm' });
    const late = fakeClient({ apply, create: vi.fn().mockRejectedValue(new AlreadyExistsError('it is there')) });
    expect(await correctObject(late, object, MISSING, { policy })).toEqual({ outcome: 'conflict' });
  });

  it('waits for its kind, and throws what the connection says', async () => {
    const unserved = deploymentOf({}, { resource: undefined });
    expect(await correctObject(fakeClient(), unserved, MISSING, { policy })).toMatchObject({ outcome: 'waiting' });
    const down = fakeClient({ apply: vi.fn().mockRejectedValue(new NetworkError('reset')) });
    await expect(correctObject(down, object, MISSING, { policy })).rejects.toMatchObject({ code: 'Network' });
  });
});

describe('putting a changed object right', () => {
  const object = deploymentOf({ replicas: 2, paused: true, strategy: { type: 'Recreate' } });
  const live = liveOf({ replicas: 5, paused: false, strategy: { type: 'Recreate' } });
  const paused = changed(['spec', 'paused'], true, false);
  const replicas = changed(['spec', 'replicas'], 2, 5);
  const right = liveOf({ replicas: 5, paused: true });

  function applied(client: ReturnType<typeof fakeClient>): JsonObject {
    return (client.apply.mock.calls[0]![1] as LiveObject)['spec'] as JsonObject;
  }

  it('changes what the verdict tells and nothing else, on the verified version', async () => {
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(right) });
    expect(await correctObject(client, object, modified(live, paused), { policy })).toEqual({
      outcome: 'corrected',
      live: right,
      created: false,
    });
    expect(applied(client)).toEqual({ paused: true, strategy: { type: 'Recreate' } });
    expect(client.apply.mock.calls[0]![1].metadata).toMatchObject({ uid: 'u1', resourceVersion: '10' });
  });

  it('sends the live value of what it leaves where Helm had applied it', async () => {
    const owned = liveOf(live['spec'] as JsonObject, { 'helm Apply': { 'f:replicas': {} } });
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(right) });
    await correctObject(client, object, modified(owned, paused, replicas), { policy, skip: [['spec', 'replicas']] });
    expect(applied(client)).toMatchObject({ replicas: 5, paused: true });
  });

  it('writes nothing when all is skipped', async () => {
    const verdict = modified(live, paused);
    expect(await correctObject(fakeClient(), object, verdict, { policy, skip: [['spec', 'paused']] })).toMatchObject({
      outcome: 'refused',
    });
  });

  it('takes values from the manifest, never from the report', async () => {
    const masked = changed(['spec', 'paused'], '***', '***');
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(right) });
    await correctObject(client, object, modified(live, masked), { policy });
    expect(applied(client)).toMatchObject({ paused: true });
    const replacing = fakeClient({
      apply: vi.fn().mockRejectedValue(duplicates),
      replace: vi.fn().mockResolvedValue(right),
    });
    await correctObject(replacing, object, modified(live, masked), { policy });
    expect(replacing.replace.mock.calls.at(-1)![1]).toMatchObject({ spec: { paused: true } });
  });

  it.each([
    ['conflict', new ConflictError('modified')],
    [
      'needs-recreation',
      new InvalidError('no', { complaints: [{ field: 'spec.selector', text: 'field is immutable' }] }),
    ],
    ['refused', new InvalidError("ValidatingAdmissionPolicy 'p' denied request", { status: 422 })],
    ['refused', new ForbiddenError('may not patch')],
  ])('%s: %s', async (outcome, error) => {
    const client = fakeClient({ apply: vi.fn().mockRejectedValue(error) });
    expect(await correctObject(client, object, modified(live, paused), { policy })).toMatchObject({ outcome });
  });

  describe('that cannot be applied', () => {
    const twice = deploymentOf({
      env: [
        { name: 'A', v: 1 },
        { name: 'A', v: 2 },
      ],
      replicas: 2,
    });
    const there = liveOf({
      env: [
        { name: 'A', v: 1 },
        { name: 'A', v: 9 },
      ],
      replicas: 5,
      other: 'x',
    });
    const field = changed(['spec', 'env', 1, 'v'], 2, 9);

    it('replaces the live object with the differing fields put right, after a dry run', async () => {
      const client = fakeClient({
        apply: vi.fn().mockRejectedValue(duplicates),
        replace: vi.fn().mockResolvedValue(right),
      });
      const onDryRun = vi.fn();
      const correction = await correctObject(client, twice, modified(there, field), { policy, onDryRun });
      expect(correction).toMatchObject({ outcome: 'corrected' });
      expect(client.replace.mock.calls.map(([, , options]) => options?.dryRun)).toEqual([true, false]);
      const [, written] = client.replace.mock.calls[1]!;
      expect(written).toMatchObject({
        metadata: { resourceVersion: '10', uid: 'u1' },
        spec: {
          env: [
            { name: 'A', v: 1 },
            { name: 'A', v: 2 },
          ],
          replicas: 5,
          other: 'x',
        },
      });
      expect(written.metadata).not.toHaveProperty('managedFields');
      expect(onDryRun).toHaveBeenCalledTimes(1);
    });

    it('goes without a dry run where a webhook cannot have one', async () => {
      const noDryRun = new InvalidError('webhook "x" does not support dry run', { status: 400 });
      const replace = vi.fn().mockRejectedValueOnce(noDryRun).mockResolvedValue(right);
      const client = fakeClient({ apply: vi.fn().mockRejectedValue(duplicates), replace });
      expect(await correctObject(client, twice, modified(there, field), { policy })).toMatchObject({
        outcome: 'corrected',
      });
    });

    it('writes nothing when the dry run is refused', async () => {
      const replace = vi.fn().mockRejectedValue(new ForbiddenError('no'));
      const client = fakeClient({ apply: vi.fn().mockRejectedValue(duplicates), replace });
      expect(await correctObject(client, twice, modified(there, field), { policy })).toMatchObject({
        outcome: 'refused',
      });
      expect(replace).toHaveBeenCalledTimes(1);
    });
  });

  describe('that is invalid together with what others set', () => {
    const rolling = liveOf({
      replicas: 5,
      strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: 3 }, kept: 'x' },
    });
    const type = changed(['spec', 'strategy', 'type'], 'Recreate', 'RollingUpdate');
    const invalid = new InvalidError('no', {
      status: 422,
      complaints: [{ field: 'spec.strategy.rollingUpdate', text: 'may not be specified' }],
    });

    it('makes what is around the named field as in the manifest', async () => {
      const client = fakeClient({
        apply: vi.fn().mockRejectedValue(invalid),
        replace: vi.fn().mockResolvedValue(right),
      });
      expect(await correctObject(client, object, modified(rolling, type), { policy })).toMatchObject({
        outcome: 'corrected',
      });
      expect(client.replace.mock.calls[1]![1]).toMatchObject({ spec: { replicas: 5 } });
      expect((client.replace.mock.calls[1]![1] as LiveObject)['spec']).toHaveProperty('strategy', { type: 'Recreate' });
    });

    it('keeps what a rule ignores in there', async () => {
      const client = fakeClient({
        apply: vi.fn().mockRejectedValue(invalid),
        replace: vi.fn().mockResolvedValue(right),
      });
      const ignoring = policyOf({ ignore: [{ paths: ['/spec/strategy/kept', '/spec/replicas'] }] });
      await correctObject(client, object, modified(rolling, type), { policy: ignoring });
      expect((client.replace.mock.calls[1]![1] as LiveObject)['spec']).toEqual({
        replicas: 5,
        strategy: { type: 'Recreate', kept: 'x' },
      });
    });

    it('never replaces the whole spec, and says what is refused', async () => {
      const replace = vi.fn().mockRejectedValue(invalid);
      const client = fakeClient({ apply: vi.fn().mockRejectedValue(invalid), replace });
      expect(await correctObject(client, object, modified(rolling, type), { policy })).toMatchObject({
        outcome: 'refused',
      });
      expect(replace).toHaveBeenCalledTimes(1);
      const top = new InvalidError('no', { status: 422, complaints: [{ field: 'spec.replicas2', text: 'no' }] });
      const other = fakeClient({ apply: vi.fn().mockRejectedValue(top) });
      expect(await correctObject(other, object, modified(rolling, type), { policy })).toMatchObject({
        outcome: 'refused',
      });
    });
  });
});

describe('fields that were added', () => {
  const object = deploymentOf({ paused: true }, { nulls: [['spec', 'nulled']] });
  const live = liveOf(
    { paused: true, hand: 'x', nulled: 'y', applied: 'z' },
    { 'kubectl-edit': { 'f:hand': {}, 'f:nulled': {} }, 'helm Apply': { 'f:applied': {} } },
  );
  const fields: FieldDrift[] = ['hand', 'nulled', 'applied'].map((key) => ({
    change: 'added',
    path: ['spec', key],
    wanted: undefined,
    live: 'x',
  }));
  const verdict = modified(live, ...fields);

  it('are corrected when that is asked for; a null of the manifest and what Helm applied in every mode', () => {
    const paths = (extraFields: 'Report' | 'Remove'): unknown[] =>
      correctableFields(object, verdict, policyOf({ extraFields })).map(({ path }) => path[1]);
    expect(paths('Report')).toEqual(['nulled', 'applied']);
    expect(paths('Remove')).toEqual(['hand', 'nulled', 'applied']);
  });

  it('are taken away from the version that the apply gave', async () => {
    const between = liveOf({ paused: true, hand: 'x', nulled: 'y' }, {}, { resourceVersion: '11' });
    const done = liveOf({ paused: true });
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(between), patch: vi.fn().mockResolvedValue(done) });
    const remove = policyOf({ extraFields: 'Remove' });
    expect(await correctObject(client, object, verdict, { policy: remove })).toMatchObject({
      outcome: 'corrected',
      live: done,
    });
    const { body } = client.patch.mock.calls[0]![2];
    expect(body).toContainEqual({ op: 'replace', path: '/metadata/resourceVersion', value: '11' });
    expect(body).toContainEqual({ op: 'remove', path: '/spec/hand' });
    expect(body).not.toContainEqual({ op: 'remove', path: '/spec/applied' });
  });

  it('need no apply when there is nothing else', async () => {
    const client = fakeClient({ patch: vi.fn().mockResolvedValue(liveOf({ paused: true })) });
    const remove = policyOf({ extraFields: 'Remove' });
    const only = modified(live, ...fields.slice(0, 1));
    expect(await correctObject(client, object, only, { policy: remove })).toMatchObject({ outcome: 'corrected' });
    const refusing = fakeClient({ patch: vi.fn().mockRejectedValue(new ForbiddenError('no')) });
    expect(await correctObject(refusing, object, only, { policy: remove })).toMatchObject({ outcome: 'refused' });
  });
});
