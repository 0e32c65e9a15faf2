import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { chartFromFiles, eventually, Fleet, simpleChart } from '../support/index.ts';
import type { KubeObject } from '../support/index.ts';
import { chartOf, configMap, failingJob, hook, job, widget, widgetCrd } from './chart-files.ts';
import { Hauling } from './hauling.ts';
import { HELM_VERSIONS } from './helm-versions.ts';

const HOOK_POLICY = 'helm.sh/hook-delete-policy';
const HOOK_WEIGHT = 'helm.sh/hook-weight';

/** What charts of real life are made of. */
describe.each(HELM_VERSIONS)(
  'a platform engineer whose charts are more than ConfigMaps, on $name',
  ({ name: helm, binary }) => {
    let fleet: Fleet;
    let hauling: Hauling;

    beforeAll(async () => {
      fleet = await Fleet.start({ clusters: 1, kwok: true, manager: false });
      await fleet.startManager({ helm: binary(fleet.environment) });
      hauling = new Hauling(fleet);
    });

    afterAll(async () => {
      await fleet.stop();
    });

    /** Order in which the API server saw objects last written. */
    function written(object: KubeObject | undefined): number {
      if (!object) throw new Error('the object is not there');
      return Number(object.metadata.resourceVersion);
    }

    it('has hooks run when they should, in the order of their weights, and those gone that ask for it', async () => {
      const name = 'hooks';
      fleet.charts.publish(
        chartOf(name, {
          'templates/main.yaml': configMap('main', { message: '{{ .Values.message | quote }}' }),
          'templates/a.yaml': hook('a', 'pre-install', { [HOOK_WEIGHT]: '5' }),
          'templates/b.yaml': hook('b', 'pre-install', { [HOOK_WEIGHT]: '-5' }),
          'templates/after.yaml': hook('after', 'post-install'),
          'templates/gone.yaml': hook('gone', 'post-install', { [HOOK_POLICY]: 'hook-succeeded' }),
          'templates/before-upgrade.yaml': hook('before-upgrade', 'pre-upgrade', {
            [HOOK_POLICY]: 'before-hook-creation',
          }),
          'templates/after-upgrade.yaml': hook('after-upgrade', 'post-upgrade'),
          'templates/before-delete.yaml': hook('before-delete', 'pre-delete'),
          'templates/after-delete.yaml': hook('after-delete', 'post-delete'),
        }),
      );
      await hauling.install(name, { valuesTemplate: 'message: one\n' });
      const installed = await Promise.all(['b', 'a', 'main', 'after'].map((part) => hauling.configMap(name, part)));
      const order = installed.map(written);
      expect(order).toEqual(order.toSorted((a, b) => a - b));
      for (const absent of ['gone', 'before-upgrade', 'after-upgrade', 'before-delete', 'after-delete'])
        expect(await hauling.configMap(name, absent), absent).toBeUndefined();

      await hauling.upgrade(name, { valuesTemplate: 'message: two\n' }, 2);
      const upgraded = await Promise.all(
        ['before-upgrade', 'main', 'after-upgrade'].map((part) => hauling.configMap(name, part)),
      );
      expect(upgraded.map(written)).toEqual(upgraded.map(written).toSorted((a, b) => a - b));
      expect((await hauling.configMap(name, 'a'))?.data['revision']).toBe('1');

      await hauling.upgrade(name, { valuesTemplate: 'message: three\n' }, 3);
      const again = await hauling.configMap(name, 'before-upgrade');
      expect(again?.data['revision']).toBe('3');
      expect(again?.metadata.uid).not.toBe(upgraded[0]?.metadata.uid);

      await fleet.removeChartProxy(name);
      expect(await hauling.configMap(name, 'main')).toBeUndefined();
      for (const left of ['before-delete', 'after-delete'])
        expect(await hauling.configMap(name, left), left).toBeDefined();
    });

    it('is told which hook failed, and sees the release recover when the chart is mended', async () => {
      const name = 'failing-hook';
      const annotations =
        '{ helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation }';
      const main = configMap('main', { message: 'fine' });
      fleet.charts.publish(
        chartOf(name, { 'templates/job.yaml': failingJob('migrate', annotations), 'templates/main.yaml': main }),
        chartOf(
          name,
          { 'templates/job.yaml': job('migrate', annotations), 'templates/main.yaml': main },
          { version: '1.0.1' },
        ),
      );
      await hauling.create(name, { version: '1.0.0' });
      await hauling.refused(name, /pre-install|pre-upgrade/);
      expect(await hauling.configMap(name, 'main')).toBeUndefined();
      await fleet.conditionOf({ chartProxy: name }, { type: 'Ready', status: 'False' });

      await fleet.patchChartProxy(name, { spec: { version: '1.0.1' } });
      await hauling.recovered(name);
      expect((await hauling.configMap(name, 'main'))?.data['message']).toBe('fine');
      await fleet.conditionOf({ chartProxy: name }, { type: 'Ready', status: 'True' });
      await fleet.removeChartProxy(name);
    });

    it('gets a chart whose crds/ bring the kind of an object in its templates, and keeps the CRD afterwards', async () => {
      const name = 'crds';
      fleet.charts.publish(
        chartOf(name, { 'crds/gadget.yaml': widgetCrd('Gadget'), 'templates/gadget.yaml': widget('Gadget') }),
      );
      await hauling.install(name);
      const path = '/apis/widgets.example.com/v1/namespaces/crds/gadgets/crds';
      expect(await fleet.cluster(1).api.find(path)).toBeDefined();
      await hauling.upgrade(name, { valuesTemplate: 'size: 7\n' }, 2);
      expect((await fleet.cluster(1).api.get(path))['spec']).toEqual({ size: 7 });
      await fleet.removeChartProxy(name);
      expect(await fleet.cluster(1).api.find(path)).toBeUndefined();
      expect(await findCrd('gadgets')).toBeDefined();
    });

    it('gets subcharts, with the values of their parent, and switches them on and off by condition', async () => {
      const name = 'umbrella';
      const child = (chart: string): Record<string, string> => ({
        [`charts/${chart}/Chart.yaml`]: `apiVersion: v2\nname: ${chart}\nversion: 1.0.0\n`,
        [`charts/${chart}/values.yaml`]: 'message: own default\nkept: own\n',
        [`charts/${chart}/templates/main.yaml`]: configMap(chart, {
          message: '{{ .Values.message | quote }}',
          kept: '{{ .Values.kept | quote }}',
          region: '{{ .Values.global.region | quote }}',
        }),
      });
      fleet.charts.publish(
        chartFromFiles(
          {
            name,
            version: '1.0.0',
            dependencies: ['first', 'second'].map((chart) => ({
              name: chart,
              version: '1.0.0',
              repository: '',
              condition: `${chart}.enabled`,
            })),
          },
          {
            'values.yaml':
              'global: { region: nowhere }\nfirst: { enabled: true, message: by the parent }\nsecond: { enabled: false }\n',
            'templates/main.yaml': configMap('main', { region: '{{ .Values.global.region | quote }}' }),
            ...child('first'),
            ...child('second'),
          },
        ),
      );
      await hauling.install(name, { valuesTemplate: 'global: { region: "{{ .Cluster.metadata.name }}" }\n' });
      expect((await hauling.configMap(name, 'first'))?.data).toEqual({
        message: 'by the parent',
        kept: 'own',
        region: 'c1',
      });
      expect(await hauling.configMap(name, 'second')).toBeUndefined();
      await hauling.upgrade(
        name,
        { valuesTemplate: 'first: { enabled: false }\nsecond: { enabled: true, message: by the user }\n' },
        2,
      );
      expect(await hauling.configMap(name, 'first')).toBeUndefined();
      expect((await hauling.configMap(name, 'second'))?.data).toEqual({
        message: 'by the user',
        kept: 'own',
        region: 'nowhere',
      });
      await fleet.removeChartProxy(name);
    });

    it('sees a release Ready only after its Job has ended, where it waits for Jobs', async () => {
      const name = 'waiting-job';
      fleet.charts.publish(chartOf(name, { 'templates/job.yaml': job('work') }));
      await hauling.install(name, { options: { wait: true, waitForJobs: true, timeout: '90s' } });
      const done = await fleet.cluster(1).api.get('/apis/batch/v1/namespaces/waiting-job/jobs/waiting-job-work');
      expect(done['status']).toMatchObject({ succeeded: 1 });
      await fleet.removeChartProxy(name);
    });

    async function findCrd(plural: string): Promise<KubeObject | undefined> {
      return fleet
        .cluster(1)
        .api.find(`/apis/apiextensions.k8s.io/v1/customresourcedefinitions/${plural}.widgets.example.com`);
    }

    // What Helm's major version makes no difference to.
    if (helm === 'helm 4') {
      it('is told that a chart uses a kind before its own template brings it, and which', async () => {
        const name = 'crd-template';
        fleet.charts.publish(
          chartOf(name, { 'templates/crd.yaml': widgetCrd('Gizmo'), 'templates/gizmo.yaml': widget('Gizmo') }),
        );
        await hauling.create(name);
        await hauling.refused(name, /no matches for kind "Gizmo"[^]*ensure CRDs are installed first/);
        await fleet.removeChartProxy(name);
      });

      it('may apply a chart before the one that brings its CRDs', async () => {
        fleet.charts.publish(
          chartOf('needs-crd', { 'templates/doodad.yaml': widget('Doodad') }),
          chartOf('brings-crd', { 'templates/crd.yaml': widgetCrd('Doodad') }),
        );
        await hauling.create('needs-crd');
        await hauling.refused('needs-crd', /no matches for kind "Doodad"/);
        await hauling.install('brings-crd');
        await hauling.recovered('needs-crd');
        await fleet.removeChartProxy('needs-crd');
        await fleet.removeChartProxy('brings-crd');
        // helm does not wait for it: the server takes the CRD away when its finalizer has taken the objects.
        await eventually(async () => expect(await findCrd('doodads')).toBeUndefined(), { what: 'the CRD is gone' });
      });

      it('leaves the CRDs of a chart out when skipCRDs says so', async () => {
        const name = 'skip-crds';
        fleet.charts.publish(
          chartOf(name, {
            'crds/sprocket.yaml': widgetCrd('Sprocket'),
            'templates/main.yaml': configMap('main', { message: 'x' }),
          }),
        );
        await hauling.install(name, { options: { skipCRDs: true } });
        expect(await findCrd('sprockets')).toBeUndefined();
        await fleet.removeChartProxy(name);
      });

      it('gets a chart that looks at what the cluster has', async () => {
        const name = 'lookup';
        const { api } = fleet.cluster(1);
        await api.create('/api/v1/namespaces', { metadata: { name } });
        await api.create(`/api/v1/namespaces/${name}/configmaps`, {
          metadata: { name: 'facts' },
          data: { zone: 'north' },
        });
        fleet.charts.publish(
          chartOf(name, {
            'templates/main.yaml': configMap('main', {
              zone: '{{ (lookup "v1" "ConfigMap" .Release.Namespace "facts").data.zone | quote }}',
              version: '{{ .Capabilities.KubeVersion.Major | quote }}',
            }),
          }),
        );
        await hauling.install(name);
        expect((await hauling.configMap(name, 'main'))?.data).toEqual({ zone: 'north', version: '1' });
        await fleet.removeChartProxy(name);
      });

      it('gets the notes of subcharts when options.options asks for them', async () => {
        const files = {
          'templates/main.yaml': configMap('main', { message: 'x' }),
          'templates/NOTES.txt': 'Notes of the parent, {{ .Release.Name }}.\n',
          'charts/child/Chart.yaml': 'apiVersion: v2\nname: child\nversion: 1.0.0\n',
          'charts/child/templates/NOTES.txt': 'Notes of the child.\n',
        };
        fleet.charts.publish(chartOf('notes', files));
        await hauling.install('sub-notes', { chartName: 'notes', options: { options: true } });
        await hauling.install('own-notes', { chartName: 'notes' });
        expect((await hauling.record('sub-notes')).info.notes).toMatch(/parent, sub-notes[^]*child|child[^]*parent/);
        const own = (await hauling.record('own-notes')).info.notes;
        expect(own).toContain('parent, own-notes');
        expect(own).not.toContain('child');
        await fleet.removeChartProxy('sub-notes');
        await fleet.removeChartProxy('own-notes');
      });

      it('gets a chart of 300 objects, changed and removed as one', async () => {
        const name = 'three-hundred';
        fleet.charts.publish(simpleChart({ name, objects: 300 }));
        const count = async (): Promise<number> => {
          const all = await fleet
            .cluster(1)
            .api.list<KubeObject & { data?: Record<string, string> }>(`/api/v1/namespaces/${name}/configmaps`);
          return all.filter((object) => object.data?.['message'] === expected).length;
        };
        let expected = 'one';
        await hauling.create(name, { valuesTemplate: 'message: one\n' });
        await fleet.deployed(name, 1, { timeoutMs: 90_000 });
        expect(await count()).toBe(300);
        expected = 'two';
        await fleet.patchChartProxy(name, { spec: { valuesTemplate: 'message: two\n' } });
        await fleet.deployed(name, 1, { revision: 2, timeoutMs: 90_000 });
        expect(await count()).toBe(300);
        await fleet.removeChartProxy(name, 90_000);
        expect(await count()).toBe(0);
      });

      it('gets a value of 900 KB that compresses well, and none of it in the log', async () => {
        const name = 'large-value';
        fleet.charts.publish(
          chartOf(name, { 'templates/main.yaml': configMap('main', { text: '{{ .Values.text | quote }}' }) }),
        );
        const text = 'a text that compresses well '.repeat(Math.floor((900 * 1024) / 28));
        await hauling.install(name, { valuesTemplate: `text: "${text}"\n` });
        expect((await hauling.configMap(name, 'main'))?.data['text']).toBe(text);
        expect(fleet.manager.log().includes('compresses well')).toBe(false);
        await fleet.removeChartProxy(name);
      });

      it('is told when a release is too large for its record, and recovers with a smaller value', async () => {
        const name = 'too-large';
        fleet.charts.publish(
          chartOf(name, { 'templates/main.yaml': configMap('main', { text: '{{ .Values.text | quote }}' }) }),
        );
        await hauling.create(name, { valuesTemplate: `text: "${noise(900 * 1024)}"\n` });
        await hauling.refused(name, /too large[^]*1 MiB/);
        await fleet.patchChartProxy(name, { spec: { valuesTemplate: 'text: small\n' } });
        await hauling.recovered(name);
        await eventually(async () => {
          expect((await hauling.configMap(name, 'main'))?.data['text']).toBe('small');
        });
        await fleet.removeChartProxy(name);
      });
    }
  },
);

/** Text that no compression makes smaller than three quarters. The same every time. */
function noise(length: number): string {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
  let state = 1;
  let text = '';
  while (text.length < length) {
    // xorshift32
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    text += alphabet.charAt((state >>> 8) & 63);
  }
  return text;
}
