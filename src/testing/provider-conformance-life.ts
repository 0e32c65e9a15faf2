/** Checks of clusters that come and go, and of runs that end and begin. */
import { clusterName } from '../runtime/index.ts';
import type { Scenario } from './provider-conformance.ts';

/** Refuses at once: nothing listens on the discard port of a loopback address. */
const DEAD_KUBECONFIG = JSON.stringify({
  apiVersion: 'v1',
  kind: 'Config',
  'current-context': 'dead',
  contexts: [{ name: 'dead', context: { cluster: 'dead', user: 'dead' } }],
  clusters: [{ name: 'dead', cluster: { server: 'https://127.0.0.1:9' } }],
  users: [{ name: 'dead', user: { token: 'none' } }],
});

export const cameAndWent: readonly Scenario[] = [
  {
    name: 'a cluster that is there at the start is engaged under its name',
    moves: false,
    play: async (stage) => {
      const one = await stage.cluster('one');
      const name = await stage.subject.declare('one', one.kubeconfig());
      stage.start();
      await stage.engaged(name);
    },
  },
  {
    name: 'a cluster that comes later is engaged, and no other is touched',
    moves: true,
    play: async (stage) => {
      const [one, two] = [await stage.cluster('one'), await stage.cluster('two')];
      const first = await stage.subject.declare('one', one.kubeconfig());
      stage.start();
      const before = await stage.engaged(first);
      const second = await stage.subject.declare('two', two.kubeconfig());
      await stage.engaged(second);
      stage.expect(first !== second, 'two clusters have one name');
      stage.expect((await stage.engaged(first)) === before, `${first} was engaged anew when ${second} came`);
    },
  },
  {
    name: 'a cluster that is taken away is disengaged, and no other is touched',
    moves: true,
    play: async (stage) => {
      const one = await stage.cluster('one');
      const first = await stage.subject.declare('one', one.kubeconfig());
      const second = await stage.subject.declare('two', one.kubeconfig());
      stage.start();
      const [stays, goes] = [await stage.engaged(first), await stage.engaged(second)];
      await stage.subject.withdraw('two');
      await stage.gone(second);
      stage.expect(goes.signal.aborted, `the engagement of ${second} goes on`);
      stage.expect((await stage.engaged(first)) === stays, `${first} was engaged anew when ${second} went`);
    },
  },
  {
    name: 'a cluster that comes back has its name again and is a new engagement',
    moves: true,
    play: async (stage) => {
      const { one, name, before } = await stage.inService();
      await stage.subject.withdraw('one');
      await stage.gone(name);
      stage.expect((await stage.subject.declare('one', one.kubeconfig())) === name, 'it came back under another name');
      stage.expect((await stage.engaged(name)) !== before, 'the ended engagement is in service again');
    },
  },
  {
    name: 'a cluster that cannot be reached keeps no other from being engaged',
    moves: true,
    play: async (stage) => {
      const one = await stage.cluster('one');
      const dead = await stage.subject.declare('adead', DEAD_KUBECONFIG);
      const live = await stage.subject.declare('one', one.kubeconfig());
      stage.start();
      await stage.engaged(live);
      await stage.until(`${dead} is declared`, () => stage.fleet.state(dead));
    },
  },
];

export const stops: readonly Scenario[] = [
  {
    name: 'its run ends within a second of its signal, and declares nothing afterwards',
    moves: false,
    play: async (stage) => {
      const { name, before } = await stage.inService();
      await stage.stop();
      stage.refresh(name);
      await stage.aftermath();
      stage.expect((await stage.engaged(name)) === before, `the end of a run ended the engagement of ${name}`);
    },
  },
  {
    name: 'its run ends also when it is stopped as soon as it began',
    moves: false,
    play: async (stage) => {
      const one = await stage.cluster('one');
      await stage.subject.declare('one', one.kubeconfig());
      stage.start();
      await stage.stop();
      await stage.aftermath();
    },
  },
  {
    name: 'refresh never throws, whatever it is asked for',
    moves: false,
    play: async (stage) => {
      const unknown = clusterName('nobody/declared-this');
      stage.refresh(unknown);
      const { name, before } = await stage.inService();
      stage.refresh(unknown);
      await stage.aftermath();
      stage.expect((await stage.engaged(name)) === before, `refresh of another cluster ended ${name}`);
      stage.expect(stage.fleet.state(unknown) === undefined, 'refresh declared a cluster that is not there');
    },
  },
];

export const restarts: readonly Scenario[] = [
  {
    name: 'a second run, as after a failure, engages nothing anew',
    moves: false,
    play: async (stage) => {
      const { name, before } = await stage.inService();
      await stage.stop();
      stage.start();
      await stage.aftermath();
      stage.expect((await stage.engaged(name)) === before, `${name} was engaged anew by the second run`);
      stage.expect(!before.signal.aborted, `the engagement of ${name} ended`);
    },
  },
  {
    name: 'a second run learns what came and what went between the runs',
    moves: true,
    play: async (stage) => {
      const one = await stage.cluster('one');
      const goes = await stage.subject.declare('one', one.kubeconfig());
      const stays = await stage.subject.declare('two', one.kubeconfig());
      stage.start();
      const [before] = [await stage.engaged(stays), await stage.engaged(goes)];
      await stage.stop();
      await stage.subject.withdraw('one');
      const comes = await stage.subject.declare('three', one.kubeconfig());
      stage.start();
      await stage.gone(goes);
      await stage.engaged(comes);
      stage.expect((await stage.engaged(stays)) === before, `${stays} was engaged anew by the second run`);
    },
  },
];
