import { describe, expect, it, vi } from 'vitest';
import {
  ConflictError,
  ForbiddenError,
  InvalidError,
  NetworkError,
  NotFoundError,
  ServerError,
} from '../kube/index.ts';
import { deploymentOf, fakeClient, liveOf, policyOf } from './fake-client.test-support.ts';
import { OPT_OUT_ANNOTATION } from './set-apart.ts';
import { verifyObject } from './verifier.ts';

const object = deploymentOf({ replicas: 2, paused: true });
const drifted = liveOf(
  { replicas: 2, paused: false },
  { helm: { 'f:replicas': {} }, 'kubectl-edit': { 'f:paused': {} } },
);
const restored = liveOf({ replicas: 2, paused: true });

describe('verifying an object', () => {
  it('asks nothing of what is not served', async () => {
    const client = fakeClient();
    const { verdict } = await verifyObject(client, deploymentOf({}, { resource: undefined }), policyOf());
    expect(verdict).toEqual({ state: 'NotServed' });
  });

  it('reads once and sends no dry run for what is equal', async () => {
    const get = vi.fn().mockResolvedValue(restored);
    const client = fakeClient({ get });
    expect((await verifyObject(client, object, policyOf())).verdict).toEqual({
      state: 'InSync',
      live: restored,
      watch: [],
    });
    expect(get).toHaveBeenCalledTimes(1);
  });

  it.each([
    ['nobody’s, so that everybody’s edits have to count', { helm: { 'f:replicas': {} } }, true],
    ['Helm’s alone', { 'helm Apply': { 'f:replicas': {}, 'f:paused': {} } }, undefined],
    ['somebody’s', { helm: { 'f:replicas': {} }, other: { 'f:paused': {} } }, undefined],
  ])('says when a field that the manifest sets is %s', async (_whose, owned, unowned) => {
    const live = liveOf({ replicas: 2, paused: true, progressDeadlineSeconds: 600 }, owned);
    const { verdict } = await verifyObject(fakeClient(), object, policyOf(), { live });
    expect(verdict).toMatchObject({ state: 'InSync' });
    expect('unowned' in verdict ? verdict.unowned : undefined).toBe(unowned);
  });

  it('does not read what it is given', async () => {
    const { verdict } = await verifyObject(fakeClient(), object, policyOf(), { live: restored });
    expect(verdict.state).toBe('InSync');
  });

  it('tells a missing object from a missing kind, and one that is taken out', async () => {
    const missing = fakeClient({ get: vi.fn().mockRejectedValue(new NotFoundError('deployments "web" not found')) });
    expect((await verifyObject(missing, object, policyOf())).verdict).toEqual({ state: 'Missing' });
    const ignore = [{ paths: [''] }];
    expect((await verifyObject(missing, object, policyOf({ ignore }))).verdict).toMatchObject({
      state: 'Excluded',
      by: 'rule',
    });
    const optedOut = deploymentOf({}, { wanted: { metadata: { annotations: { [OPT_OUT_ANNOTATION]: 'disabled' } } } });
    expect((await verifyObject(missing, optedOut, policyOf())).verdict).toMatchObject({
      by: 'annotation',
      live: undefined,
    });
    const notServed = fakeClient({ get: vi.fn().mockRejectedValue(new NotFoundError('404', { notServed: true })) });
    expect((await verifyObject(notServed, object, policyOf())).verdict).toEqual({ state: 'NotServed' });
  });

  it('tries out on the very version that it read, as Helm, by force, and counts it', async () => {
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(restored) });
    const onDryRun = vi.fn();
    const { verdict } = await verifyObject(client, object, policyOf(), { live: drifted, onDryRun });
    expect(verdict).toMatchObject({
      state: 'Modified',
      applicable: true,
      watch: ['kubectl-edit'],
      fields: [
        {
          change: 'changed',
          path: ['spec', 'paused'],
          wanted: true,
          live: false,
          author: { manager: 'kubectl-edit', operation: 'Update', time: '2026-01-01T00:00:00Z' },
        },
      ],
    });
    const [, document, options] = client.apply.mock.calls[0]!;
    expect(document.metadata).toMatchObject({ uid: 'u1', resourceVersion: '10' });
    expect(options).toMatchObject({ fieldManager: 'helm', force: true, dryRun: true });
    expect(onDryRun).toHaveBeenCalledTimes(1);
  });

  it('finds no drift where the server makes of the manifest what is there', async () => {
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(drifted) });
    expect((await verifyObject(client, object, policyOf(), { live: drifted })).verdict.state).toBe('InSync');
  });

  it('does not take for drift what a webhook writes anew every time', async () => {
    const before = liveOf({ ...(drifted['spec'] as object), touched: 'yesterday' });
    const after = liveOf({ replicas: 2, paused: true, touched: 'now' });
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(after) });
    const { verdict } = await verifyObject(client, object, policyOf(), { live: before });
    expect(verdict).toMatchObject({ fields: [{ path: ['spec', 'paused'] }] });
  });

  it('tells what an apply of Helm would take away', async () => {
    const leftover = liveOf({ replicas: 2, paused: false, old: 'x' }, { 'helm Apply': { 'f:old': {} } });
    const client = fakeClient({ apply: vi.fn().mockResolvedValue(restored) });
    const { verdict } = await verifyObject(client, object, policyOf(), { live: leftover });
    expect(verdict).toMatchObject({
      fields: [{ change: 'changed' }, { change: 'added', path: ['spec', 'old'], live: 'x' }],
    });
  });

  it('looks again when somebody writes meanwhile, and says so when it does not end', async () => {
    const get = vi.fn().mockResolvedValue(drifted);
    const apply = vi.fn().mockRejectedValueOnce(new ConflictError('modified')).mockResolvedValue(restored);
    expect((await verifyObject(fakeClient({ get, apply }), object, policyOf(), { live: drifted })).verdict.state).toBe(
      'Modified',
    );
    expect(get).toHaveBeenCalledTimes(1);
    const never = fakeClient({ get, apply: vi.fn().mockRejectedValue(new ConflictError('modified')) });
    await expect(verifyObject(never, object, policyOf())).rejects.toMatchObject({ code: 'ObjectMoving' });
  });

  it.each([
    ['no permission', new ForbiddenError('may not patch')],
    [
      'validation',
      new InvalidError('no', { status: 422, complaints: [{ field: 'spec.paused', text: 'secret words' }] }),
    ],
    ['a webhook that is down', new ServerError('failed calling webhook "x"')],
    ['a key twice', new ServerError('failed to create typed patch object: .x: duplicate entries for key [name="a"]')],
  ])('compares by structure where the server refuses a dry run: %s', async (_, error) => {
    const client = fakeClient({ apply: vi.fn().mockRejectedValue(error) });
    const { verdict, notes } = await verifyObject(client, object, policyOf(), { live: drifted });
    expect(verdict).toMatchObject({
      state: 'Modified',
      applicable: false,
      fields: [{ path: ['spec', 'paused'], wanted: true }],
    });
    expect(notes).toHaveLength(1);
    expect(notes.join()).not.toContain('secret words');
  });

  it('takes a value that only Helm wrote for what a webhook made of it, without a dry run', async () => {
    const refuse = { apply: vi.fn().mockRejectedValue(new ForbiddenError('no')) };
    const own = liveOf({ replicas: 2, paused: false }, { helm: { 'f:replicas': {}, 'f:paused': {} } });
    expect((await verifyObject(fakeClient(refuse), object, policyOf(), { live: own })).verdict.state).toBe('InSync');
    const caaphs = liveOf({ replicas: 2, paused: false }, { manager: { 'f:replicas': {}, 'f:paused': {} } });
    expect((await verifyObject(fakeClient(refuse), object, policyOf(), { live: caaphs })).verdict.state).toBe(
      'Modified',
    );
  });

  it.each([new NetworkError('reset'), new ServerError('etcdserver: leader changed'), new TypeError('a mistake')])(
    'throws on: %s',
    async (error) => {
      const client = fakeClient({ apply: vi.fn().mockRejectedValue(error) });
      await expect(verifyObject(client, object, policyOf(), { live: drifted })).rejects.toBe(error);
      const deaf = fakeClient({ get: vi.fn().mockRejectedValue(error) });
      await expect(verifyObject(deaf, object, policyOf())).rejects.toBe(error);
    },
  );

  it('leaves out what the server does not know, and says which', async () => {
    const odd = deploymentOf({ replicas: 2, paused: true, odd: { x: 1 } });
    const unknown = new ServerError('failed to create typed patch object (x): .spec.odd: field not declared in schema');
    const apply = vi.fn().mockRejectedValueOnce(unknown).mockResolvedValue(restored);
    const { verdict, notes } = await verifyObject(fakeClient({ apply }), odd, policyOf(), { live: restored });
    expect(verdict.state).toBe('InSync');
    expect(notes).toEqual(['the server knows no field /spec/odd of the manifest']);
    expect(apply.mock.calls[1]?.[1]).toMatchObject({ spec: { replicas: 2, paused: true } });
    expect(odd.wanted['spec']).toHaveProperty('odd');
  });

  describe('whose replicas differ', () => {
    const scaled = liveOf({ replicas: 7, paused: true }, { 'kube-controller-manager': { 'f:replicas': {} } });
    const autoscaler = (spec: object, metadata: object = {}): object => ({
      metadata,
      spec: { scaleTargetRef: { apiVersion: 'apps/v1beta1', kind: 'Deployment', name: 'web' }, ...spec },
    });

    it.each([
      ['within the limits', autoscaler({ minReplicas: 2, maxReplicas: 7 }), 7, 'InSync'],
      ['above them', autoscaler({ minReplicas: 2, maxReplicas: 6 }), 7, 'Modified'],
      ['below the default limit', autoscaler({ maxReplicas: 6 }), 0, 'Modified'],
      [
        'at nothing, by KEDA',
        autoscaler({ maxReplicas: 6 }, { ownerReferences: [{ apiVersion: 'keda.sh/v1alpha1', kind: 'ScaledObject' }] }),
        0,
        'InSync',
      ],
      [
        'of another kind',
        { spec: { scaleTargetRef: { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'web' } } },
        7,
        'Modified',
      ],
      [
        'of another group',
        { spec: { scaleTargetRef: { apiVersion: 'x/v1', kind: 'Deployment', name: 'web' } } },
        7,
        'Modified',
      ],
    ])('an autoscaler keeps them %s', async (_, item, replicas, state) => {
      const list = vi.fn().mockResolvedValue({ items: [{ metadata: {}, ...item }], resourceVersion: '1' });
      const client = fakeClient({ list, apply: vi.fn().mockResolvedValue(restored) });
      const live = liveOf({ replicas, paused: true });
      expect((await verifyObject(client, object, policyOf(), { live })).verdict.state).toBe(state);
      expect(list).toHaveBeenCalledTimes(1);
    });

    it('does not send them with a dry run of something else', async () => {
      const list = vi.fn().mockResolvedValue({ items: [{ metadata: {}, ...autoscaler({ maxReplicas: 9 }) }] });
      const apply = vi.fn().mockResolvedValue(liveOf({ replicas: 7, paused: true }));
      const live = liveOf({ replicas: 7, paused: false });
      const { verdict } = await verifyObject(fakeClient({ list, apply }), object, policyOf(), { live });
      expect(verdict).toMatchObject({ fields: [{ path: ['spec', 'paused'] }] });
      expect(apply.mock.calls[0]?.[1]).toMatchObject({ spec: { paused: true } });
      expect(JSON.stringify(apply.mock.calls[0]?.[1])).not.toContain('replicas');
    });

    it('knows of no autoscaler where it may not list them', async () => {
      const list = vi.fn().mockRejectedValue(new ForbiddenError('no'));
      const client = fakeClient({ list, apply: vi.fn().mockResolvedValue(restored) });
      expect((await verifyObject(client, object, policyOf(), { live: scaled })).verdict.state).toBe('Modified');
      const down = fakeClient({ list: vi.fn().mockRejectedValue(new NetworkError('reset')) });
      await expect(verifyObject(down, object, policyOf(), { live: scaled })).rejects.toMatchObject({ code: 'Network' });
    });
  });

  describe('to which somebody added', () => {
    const added = liveOf(
      { replicas: 2, paused: true, probe: { path: '/', port: 1 }, extra: 'x', defaulted: 'd', controllers: 'c' },
      {
        helm: { 'f:replicas': {}, 'f:paused': {} },
        'kubectl-edit': { 'f:probe': { '.': {}, 'f:path': {}, 'f:port': {} }, 'f:extra': {}, 'f:defaulted': {} },
        'kube-controller-manager': { 'f:controllers': {} },
      },
    );
    const removed = liveOf({ replicas: 2, paused: true, defaulted: 'd', controllers: 'c' });

    it('tells it when asked, the whole of it as one field, without what is a default', async () => {
      const client = fakeClient({ patch: vi.fn().mockResolvedValue(removed) });
      const { verdict } = await verifyObject(client, object, policyOf({ extraFields: 'Report' }), { live: added });
      expect(verdict).toMatchObject({
        state: 'Modified',
        applicable: true,
        fields: [
          { change: 'added', path: ['spec', 'probe'], wanted: undefined, author: { manager: 'kubectl-edit' } },
          { change: 'added', path: ['spec', 'extra'], live: 'x' },
        ],
      });
      const [, , { body }, options] = client.patch.mock.calls[0]!;
      expect(options).toMatchObject({ dryRun: true, fieldManager: 'helm' });
      expect(body).toContainEqual({ op: 'replace', path: '/metadata/resourceVersion', value: '10' });
      expect(body).toContainEqual({ op: 'remove', path: '/spec/probe' });
    });

    it('asks nothing by default', async () => {
      expect((await verifyObject(fakeClient(), object, policyOf(), { live: added })).verdict.state).toBe('InSync');
    });

    it('leaves out what a rule ignores', async () => {
      const ignore = [{ paths: ['/spec/probe', '/spec/extra', '/spec/defaulted'] }];
      const policy = policyOf({ extraFields: 'Report', ignore });
      expect((await verifyObject(fakeClient(), object, policy, { live: added })).verdict.state).toBe('InSync');
    });

    it('tries one by one what cannot be taken away together', async () => {
      const refuse = new InvalidError('no', { status: 422, complaints: [{ field: 'spec.probe', text: 'required' }] });
      const patch = vi.fn().mockRejectedValueOnce(refuse).mockRejectedValueOnce(refuse).mockResolvedValue(removed);
      const { verdict } = await verifyObject(fakeClient({ patch }), object, policyOf({ extraFields: 'Report' }), {
        live: added,
      });
      expect(patch).toHaveBeenCalledTimes(4);
      expect(verdict).toMatchObject({ fields: [{ path: ['spec', 'probe'] }, { path: ['spec', 'extra'] }] });
    });

    it('tells in every mode what stands where the manifest has a null', async () => {
      const nulled = deploymentOf(
        { replicas: 2, paused: true },
        {
          nulls: [
            ['spec', 'extra'],
            ['spec', 'controllers2'],
          ],
        },
      );
      const patch = vi.fn().mockResolvedValue(removed);
      const { verdict } = await verifyObject(fakeClient({ patch }), nulled, policyOf(), { live: added });
      expect(verdict).toMatchObject({ fields: [{ change: 'added', path: ['spec', 'extra'] }] });
    });
  });
});
