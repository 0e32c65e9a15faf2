import { expect, it } from 'vitest';
import { clusterName, prefixedClusterName, requestKey, splitClusterName } from './cluster-name.ts';
import * as errors from './errors.ts';

const a = clusterName('ns/a');

/** Codes stand in users' programs and searches: they neither change nor come back with another meaning. */
it('has one code per class, and these', () => {
  const all = [
    new errors.ClusterNotFoundError(a),
    new errors.ClusterNotConnectedError(a, { code: 'X', message: 'the server hides' }),
    new errors.TerminalError('no'),
    new errors.ReconcileTimeoutError(1_500),
    new errors.ClusterGoneError(a, 'deleted'),
    new errors.StoppingError(),
    new errors.LeadershipLostError('lost'),
    new errors.ShardLostError(a, 'paused'),
    new errors.StartupTimeoutError('late'),
    new errors.RunnableEndedError('server', new Error('boom')),
    new errors.InvalidClusterNameError('', 'it is empty'),
  ];
  expect(all.map(({ name, code, message }) => `${name} ${code}: ${message}`)).toEqual([
    'ClusterNotFoundError CAPSTAN_CLUSTER_NOT_FOUND: cluster ns/a is not known',
    'ClusterNotConnectedError CAPSTAN_CLUSTER_NOT_CONNECTED: cluster ns/a is not connected: the server hides',
    'TerminalError CAPSTAN_TERMINAL: no',
    'ReconcileTimeoutError CAPSTAN_RECONCILE_TIMEOUT: the reconcile did not end within its limit of 1.5 s',
    'ClusterGoneError CAPSTAN_CLUSTER_GONE: cluster ns/a was disengaged: deleted',
    'StoppingError CAPSTAN_STOPPING: the manager is stopping',
    'LeadershipLostError CAPSTAN_LEADERSHIP_LOST: lost',
    'ShardLostError CAPSTAN_SHARD_LOST: this replica does not serve cluster ns/a any more: paused',
    'StartupTimeoutError CAPSTAN_STARTUP_TIMEOUT: late',
    'RunnableEndedError CAPSTAN_RUNNABLE_ENDED: server ended',
    'InvalidClusterNameError CAPSTAN_INVALID_CLUSTER_NAME: "" is no cluster name: it is empty',
  ]);
  // One class besides these: the abstract base.
  expect(Object.keys(errors)).toHaveLength(all.length + 1);
});

it.each(['', 'a b', 'a\n', 'ä', 'x'.repeat(601)])('refuses %j as a cluster name', (text) => {
  expect(() => clusterName(text)).toThrow(errors.InvalidClusterNameError);
});

it.each<[string, { namespace: string; name: string } | undefined]>([
  ['ns/a', { namespace: 'ns', name: 'a' }],
  ['capi#ns/a', { namespace: 'ns', name: 'a' }],
  ['local', undefined],
  ['/a', undefined],
  ['ns/', undefined],
  ['a/b/c', undefined],
])('splits %s', (text, parts) => {
  expect(splitClusterName(clusterName(text))).toEqual(parts);
});

it('keeps the names of providers apart, and requests too', () => {
  expect(prefixedClusterName('capi', a)).toBe('capi#ns/a');
  expect(requestKey({ cluster: a, namespace: 'b', name: 'c' })).not.toBe(
    requestKey({ cluster: clusterName('ns/a/b'), namespace: '', name: 'c' }),
  );
});
