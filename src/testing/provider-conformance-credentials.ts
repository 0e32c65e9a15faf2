/** Checks of kubeconfigs that change, for better or worse. */
import { isKubeError } from '../kube/index.ts';
import type { Resource } from '../kube/index.ts';
import type { Cluster } from '../runtime/index.ts';
import type { Scenario } from './provider-conformance.ts';
import { reasonOf } from './provider-conformance-stage.ts';

/** No YAML, and holds a word that must not be told on. */
const BROKEN_KUBECONFIG = 'clusters: [ hush-hush-canary';
const CANARY = 'hush-hush-canary';
const NAMESPACES: Resource = { group: '', version: 'v1', plural: 'namespaces', namespaced: false };
const CALL_LIMIT_MS = 10_000;

/** Is the server of the opinion that we may ask? */
async function answers(cluster: Cluster): Promise<boolean> {
  try {
    await cluster.client.find(NAMESPACES, { name: 'kube-system' }, { timeoutMs: CALL_LIMIT_MS });
    return true;
  } catch (error) {
    return !isKubeError(error, 'Unauthorized') && isKubeError(error, 'Forbidden');
  }
}

export const rotations: readonly Scenario[] = [
  {
    name: 'rotated credentials are taken over in place, by the same engagement',
    moves: false,
    play: async (stage) => {
      const { one, name, before } = await stage.inService();
      const old = before.kubeconfig();
      await stage.subject.declare('one', await one.rotate());
      await stage.until(`${name} uses the new credentials`, () => (before.kubeconfig() === old ? undefined : true));
      stage.expect((await stage.engaged(name)) === before, `${name} was engaged anew by a rotation`);
      stage.expect(await answers(before), `${name} is refused after the rotation`);
    },
  },
  {
    name: 'refresh declares the cluster again, though nothing changed',
    moves: false,
    play: async (stage) => {
      const { name, before } = await stage.inService();
      if (stage.subject.provider.refresh === undefined) return;
      const said = (): number => stage.declared.filter((line) => line.endsWith(` ${name}`)).length;
      const count = said();
      stage.refresh(name);
      await stage.until(`${name} is declared after a refresh`, () => (said() > count ? true : undefined));
      stage.expect((await stage.engaged(name)) === before, `${name} was engaged anew by a refresh`);
    },
  },
  {
    name: 'a kubeconfig of another server makes another engagement of the same name',
    moves: true,
    play: async (stage) => {
      const [one, two] = [await stage.cluster('one'), await stage.cluster('two')];
      const name = await stage.subject.declare('one', one.kubeconfig());
      stage.start();
      const before = await stage.engaged(name);
      await stage.subject.declare('one', two.kubeconfig());
      const after = await stage.until(`${name} is another cluster`, () => {
        const state = stage.fleet.state(name);
        return state?.phase === 'engaged' && state.cluster !== before ? state.cluster : undefined;
      });
      stage.expect(before.signal.aborted, 'the engagement of the server before goes on');
      stage.expect(after.uid !== before.uid, 'the same server answers');
    },
  },
];

export const refusals: readonly Scenario[] = [
  {
    name: 'a kubeconfig that cannot be used is told as a reason without quoting it, and a good one mends it',
    moves: true,
    play: async (stage) => {
      const one = await stage.cluster('one');
      const name = await stage.subject.declare('one', one.kubeconfig());
      const bad = await stage.subject.declare('two', BROKEN_KUBECONFIG);
      stage.start();
      const good = await stage.engaged(name);
      // The name it will have, or one that stands for it as long as it has none.
      const reason = await stage.until('some cluster tells a reason', () =>
        [...stage.fleet.states().values()].map(reasonOf).find((text) => text !== undefined),
      );
      stage.expect(!reason.includes(CANARY), 'the reason quotes the kubeconfig');
      await stage.subject.declare('two', one.kubeconfig());
      await stage.engaged(bad);
      await stage.until('no reason is left', () =>
        [...stage.fleet.states().values()].every((state) => reasonOf(state) === undefined) ? true : undefined,
      );
      stage.expect((await stage.engaged(name)) === good, `${name} was engaged anew by another's trouble`);
    },
  },
  {
    name: 'a bad new kubeconfig leaves the cluster in service and is told as a warning',
    moves: true,
    play: async (stage) => {
      const { one, name, before } = await stage.inService();
      await stage.subject.declare('one', BROKEN_KUBECONFIG);
      const warning = await stage.until(`${name} carries a warning`, () => reasonOf(stage.fleet.state(name)));
      stage.expect(!warning.includes(CANARY), 'the warning quotes the kubeconfig');
      stage.expect((await stage.engaged(name)) === before, 'the connection before did not stay');
      stage.expect(await answers(before), 'the connection before does not work any more');
      await stage.subject.declare('one', one.kubeconfig());
      await stage.until('the warning is gone', () =>
        reasonOf(stage.fleet.state(name)) === undefined ? true : undefined,
      );
      stage.expect((await stage.engaged(name)) === before, `${name} was engaged anew on the way back`);
    },
  },
];
